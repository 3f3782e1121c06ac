package config

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/agentledger/agentledger/internal/textcheck"
)

// Environment variables that contain a secret itself. They have no flag.
const (
	PlatformSecretVariable = "AGENTLEDGER_PLATFORM_SECRET"
	MasterKeyVariable      = "AGENTLEDGER_MASTER_KEY"
)

const variablePrefix = "AGENTLEDGER_"

// otherVariables are read by the builds and tests of this repository.
var otherVariables = []string{"AGENTLEDGER_BIN", "AGENTLEDGER_DRILL_CLOCK", "AGENTLEDGER_RELEASE_KEY_FILE",
	"AGENTLEDGER_TEST_PROGRAMS"}

// UnknownVariable is an environment variable with the prefix of settings that is not a setting. It does not contain
// the value, because that may be a secret.
type UnknownVariable struct {
	Name  string
	Meant string // the setting that was probably meant, or ""
}

// UnknownVariables returns the environment variables with the prefix of settings that no command of the application
// reads, sorted by name. They have no effect.
func UnknownVariables(app *kong.Application) []UnknownVariable {
	var names []string
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, variablePrefix) {
			names = append(names, name)
		}
	}
	return unknownVariables(names, knownVariables(app))
}

// knownVariables returns the environment variables that the commands of the application read.
func knownVariables(app *kong.Application) []string {
	known := []string{PlatformSecretVariable, MasterKeyVariable}
	_ = kong.Visit(app, func(node kong.Visitable, next kong.Next) error { // the visitor returns no error
		if flag, ok := node.(*kong.Flag); ok {
			known = append(known, flag.Envs...)
		}
		return next(nil)
	})
	slices.Sort(known)
	return slices.Compact(known)
}

func unknownVariables(names, known []string) (unknown []UnknownVariable) {
	slices.Sort(names)
	var t Tuning
	keys := t.keys()
	for _, name := range names {
		if slices.Contains(known, name) || slices.Contains(otherVariables, name) || isServiceLink(name, names) {
			continue
		}
		key := textcheck.Closest(strings.ToLower(strings.TrimPrefix(name, variablePrefix)), keys)
		if key != "" {
			key = "tuning." + key + " in the configuration file"
		}
		unknown = append(unknown, UnknownVariable{Name: name, Meant: cmp.Or(textcheck.Closest(name, known), key)})
	}
	return unknown
}

// isServiceLink reports whether Kubernetes set the variable, as it does in every container for a Service with a name
// such as agentledger. Kubernetes sets all variables of a Service, so AGENTLEDGER_PORT without
// AGENTLEDGER_SERVICE_HOST is not one of them.
func isServiceLink(name string, names []string) bool {
	return slices.ContainsFunc(names, func(host string) bool {
		service, ok := strings.CutSuffix(host, "SERVICE_HOST")
		rest, same := strings.CutPrefix(name, service)
		return ok && same && (name == host || rest == "SERVICE_PORT" || strings.HasPrefix(rest, "SERVICE_PORT_") ||
			rest == "PORT" || strings.HasPrefix(rest, "PORT_"))
	})
}

// WarnOfVariables logs a warning for each environment variable that has no effect, for example because it is
// misspelled. It uses the log settings of the command, and does nothing for commands that read no variables.
func WarnOfVariables(parsed *kong.Context) {
	var l Logging
	reads := false
	for _, flag := range parsed.Flags() {
		reads = reads || len(flag.Envs) > 0
		switch text, _ := parsed.FlagValue(flag).(string); flag.Name {
		case "log-level":
			l.LogLevel = text
		case "log-format":
			l.LogFormat = text
		}
	}
	if !reads {
		return
	}
	for _, v := range UnknownVariables(parsed.Model) {
		logger := l.NewLogger(parsed.Stderr)
		if v.Meant != "" {
			logger = logger.With("did_you_mean", v.Meant)
		}
		logger.Warn("environment variable is not a setting and has no effect", "variable", v.Name)
	}
}
