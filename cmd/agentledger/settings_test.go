package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// maxServeFlags bounds the flags of serve.
const maxServeFlags = 30 // including the two files of TLS

// The table of settings names each flag of serve with its variable, and no other.
func TestSettingsAreDocumented(t *testing.T) {
	manual, err := os.ReadFile("../../docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| (`--[^|]*) \\| (`[A-Z][^|]*) \\|")
	quoted := regexp.MustCompile("`([^`]*)`")
	documented := make(map[string]string) // variable by flag
	for _, cells := range row.FindAllStringSubmatch(string(manual), -1) {
		flags, variables := quoted.FindAllStringSubmatch(cells[1], -1), quoted.FindAllStringSubmatch(cells[2], -1)
		if len(flags) != len(variables) {
			t.Errorf("%s: got %d variables, want one for each flag", cells[1], len(variables))
			continue
		}
		for i := range flags {
			documented[strings.TrimPrefix(flags[i][1], "--")] = "AGENTLEDGER_" + variables[i][1]
		}
	}
	var c commands
	parser, err := kong.New(&c)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range parser.Model.Children {
		if command.Name != "serve" {
			continue
		}
		if n := len(command.Flags); n > maxServeFlags {
			t.Errorf("serve has %d flags, want at most %d: settings that few operators change belong to config.Tuning", n, maxServeFlags)
		}
		for _, flag := range command.Flags {
			if got, want := documented[flag.Name], flag.Envs; len(want) != 1 || got != want[0] {
				t.Errorf("--%s: got variable %q in the manual, want %q", flag.Name, got, want)
			}
			delete(documented, flag.Name)
		}
	}
	for name := range documented {
		t.Errorf("--%s: in the manual, but no flag", name)
	}
}
