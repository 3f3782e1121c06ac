package config

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/go-json-experiment/json"
)

// settingsFile holds the members of a JSON file of settings. They are named like
// flags, with dashes or with underscores; here with dashes.
type settingsFile map[string]any

// File is the loader (a kong.ConfigurationLoader) of a JSON file of settings.
func File(r io.Reader) (kong.Resolver, error) {
	var given map[string]any
	if err := json.UnmarshalRead(r, &given); err != nil {
		return nil, fmt.Errorf("settings file: %w", err)
	}
	f := make(settingsFile, len(given))
	for name, value := range given {
		flag := strings.ReplaceAll(name, "_", "-")
		if _, twice := f[flag]; twice {
			return nil, fmt.Errorf("settings file: %s is there twice", flag)
		}
		f[flag] = value
	}
	return f, nil
}

// Validate refuses a name that is no setting of any command: it would have no
// effect.
func (f settingsFile) Validate(app *kong.Application) error {
	known := map[string]bool{}
	err := kong.Visit(app, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			known[flag.Name] = true
		}
		return next(nil)
	})
	for name := range f {
		if !known[name] {
			return fmt.Errorf("settings file: %s is not a setting", name)
		}
	}
	return err
}

// Resolve returns the value for a flag that was not given, unless the
// environment has one.
func (f settingsFile) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, variable := range flag.Envs {
		if _, set := os.LookupEnv(variable); set {
			return nil, nil
		}
	}
	return f[flag.Name], nil
}
