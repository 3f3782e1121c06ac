package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/commandline"
	"github.com/agentledger/agentledger/internal/oidc"
	"github.com/agentledger/agentledger/internal/secret"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// File is the JSON settings file. Its members have the names of flags, with dashes or underscores. The members
// "tuning", "openid" and "acme" contain the settings without a flag. If no file was given, it is empty.
type File struct {
	flags   map[string]any    // by name, with dashes
	written map[string]string // names as spelled in the file, by name with dashes
	tuning  Tuning
	openID  []oidc.Provider
	acme    ACME
	path    string // of the file; "" if there is none
}

// Path returns the path of the file, or "" if there is none.
func (f *File) Path() string { return f.path }

var byteOrderMark = []byte("\ufeff")

// decodeSettings decodes the file. It checks for a byte order mark, which the error of the JSON decoder does not
// mention.
func decodeSettings(r io.Reader) (given map[string]any, err error) {
	text, err := io.ReadAll(r)
	switch {
	case err != nil:
		return nil, err
	case bytes.HasPrefix(text, byteOrderMark):
		return nil, errors.New("it begins with a byte order mark: save it as UTF-8 without one")
	}
	if err := json.Unmarshal(text, &given); err != nil {
		return nil, fmt.Errorf("expected a JSON object with settings: %w", err)
	}
	return given, nil
}

// tuningSection is the member of the settings file that contains the tuning.
const tuningSection = "tuning"

// ParserOptions returns the options for a command-line parser whose settings may come from a file named by a
// kong.ConfigFlag.
func ParserOptions() []kong.Option {
	f := &File{tuning: DefaultTuning()}
	return append(commandline.Forms(), kong.Configuration(f.loadFile), kong.Bind(f))
}

// loadFile implements kong.ConfigurationLoader.
func (f *File) loadFile(r io.Reader) (kong.Resolver, error) {
	if file, ok := r.(*os.File); ok {
		f.path = file.Name()
		if err := secret.CheckOpenSettings(file); err != nil {
			return nil, fmt.Errorf("settings file: %w", err)
		}
	}
	given, err := decodeSettings(r)
	if err != nil {
		return nil, fmt.Errorf("settings file: %w", err)
	}
	f.written = make(map[string]string, len(given))
	for name := range given {
		f.written[strings.ReplaceAll(name, "_", "-")] = name
	}
	if f.flags, err = normalizeNames(given, "_", "-"); err != nil {
		return nil, fmt.Errorf("settings file: %w", err)
	}
	f.tuning = DefaultTuning()
	if section, ok := f.flags[tuningSection]; ok {
		delete(f.flags, tuningSection)
		if err := f.tuning.decodeSection(section); err != nil {
			return nil, fmt.Errorf("settings file: %w", err)
		}
	}
	if section, ok := f.flags[openIDSection]; ok {
		delete(f.flags, openIDSection)
		if f.openID, err = decodeProviders(section); err != nil {
			return nil, fmt.Errorf("settings file: %w", err)
		}
	}
	if section, ok := f.flags[acmeSection]; ok {
		delete(f.flags, acmeSection)
		if f.acme, err = decodeACME(section); err != nil {
			return nil, fmt.Errorf("settings file: %w", err)
		}
	}
	return f, nil
}

// normalizeNames returns the members with from replaced by to in their names. It returns an error if two names then
// collide.
func normalizeNames(members map[string]any, from, to string) (map[string]any, error) {
	named := make(map[string]any, len(members))
	for name, v := range members {
		name = strings.ReplaceAll(name, from, to)
		if _, twice := named[name]; twice {
			return nil, fmt.Errorf("%s appears twice", name)
		}
		named[name] = v
	}
	return named, nil
}

// decodeSection decodes the section "tuning".
func (t *Tuning) decodeSection(section any) error {
	members, ok := section.(map[string]any)
	if !ok {
		return errors.New("tuning must be an object")
	}
	members, err := normalizeNames(members, "-", "_")
	if err != nil {
		return fmt.Errorf("tuning: %w", err)
	}
	for _, s := range t.allSettings() {
		v, given := members[s.key]
		if !given {
			continue
		}
		if err := s.value.decodeValue(v); err != nil {
			return fmt.Errorf("tuning.%s: %w", s.key, err)
		}
		delete(members, s.key)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		return unknownSetting("tuning.", name, t.keys())
	}
	return nil
}

// keys returns the names of all tuning settings.
func (t *Tuning) keys() (names []string) {
	for _, s := range t.allSettings() {
		names = append(names, s.key)
	}
	return names
}

// unknownSetting returns the error for a name that is not a setting. It suggests the setting with the closest name.
func unknownSetting(section, name string, known []string) error {
	if closest := textcheck.Closest(name, known); closest != "" {
		return fmt.Errorf("%s%s is not a setting: did you mean %s%s?", section, name, section, closest)
	}
	return fmt.Errorf("%s%s is not a setting", section, name)
}

// Validate rejects a name that is not a setting of any command, because it would have no effect.
func (f *File) Validate(app *kong.Application) error {
	known := map[string]bool{}
	err := kong.Visit(app, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			known[flag.Name] = true
		}
		return next(nil)
	})
	for _, name := range slices.Sorted(maps.Keys(f.flags)) {
		if known[name] {
			continue
		}
		if key, moved := tuningKey(name); moved {
			return fmt.Errorf("settings file: %s is tuning.%s now", name, key)
		}
		return fmt.Errorf("settings file: %w", f.unknownName(name, known))
	}
	return err
}

// unknownName returns the error for a name in the file that is not a flag, in the spelling of the file.
func (f *File) unknownName(name string, flags map[string]bool) error {
	known := slices.Sorted(maps.Keys(flags))
	known = append(known, tuningSection, openIDSection, acmeSection)
	written := f.written[name]
	if strings.Contains(written, "_") {
		for i := range known {
			known[i] = strings.ReplaceAll(known[i], "-", "_")
		}
	}
	if textcheck.Closest(written, known) == "" {
		if key := textcheck.Closest(strings.ReplaceAll(written, "-", "_"), f.tuning.keys()); key != "" {
			return fmt.Errorf("%s is not a setting: did you mean tuning.%s?", written, key)
		}
	}
	return unknownSetting("", written, known)
}

// unknownMember returns the name of the unknown member because of which a section of the file was rejected, or "".
func unknownMember(err error) string {
	semantic := (*json.SemanticError)(nil)
	if !errors.Is(err, json.ErrUnknownName) || !errors.As(err, &semantic) {
		return ""
	}
	return semantic.JSONPointer.LastToken()
}

// Resolve returns the file's value for a flag, or nil if the environment has one. kong calls it for flags that were
// not given.
func (f *File) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, variable := range flag.Envs {
		if _, set := os.LookupEnv(variable); set {
			return nil, nil
		}
	}
	return f.flags[flag.Name], nil
}

// BeforeApply copies the tuning from the file. kong calls it for commands that have a Tuning. It rejects environment
// variables named like a tuning setting, because they would have no effect.
func (t *Tuning) BeforeApply(f *File) error {
	*t = f.tuning
	for _, s := range t.allSettings() {
		variable := "AGENTLEDGER_" + strings.ToUpper(s.key)
		if _, set := os.LookupEnv(variable); set {
			return fmt.Errorf("%s is tuning.%s in the configuration file now", variable, s.key)
		}
	}
	return nil
}

// ExplainError returns the error of a parser. For a flag that became a tuning setting, it returns an error with the
// new place of the setting instead.
func ExplainError(err error) error {
	if err == nil {
		return nil
	}
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag --")
	if i := strings.IndexAny(name, ", "); i >= 0 {
		name = name[:i]
	}
	if key, moved := tuningKey(name); unknown && moved {
		return fmt.Errorf("--%s is tuning.%s in the configuration file now", name, key)
	}
	return err
}

// tuningKey returns the tuning setting that has the name of a flag, if there is one.
func tuningKey(flag string) (key string, ok bool) {
	key = strings.ReplaceAll(flag, "-", "_")
	var t Tuning
	return key, slices.ContainsFunc(t.allSettings(), func(s setting) bool { return s.key == key })
}
