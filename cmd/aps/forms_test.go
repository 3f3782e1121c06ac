package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/agentledger/agentledger/internal/commandline"
)

// freeText are the flags and arguments that accept any text, of all commands or of one.
var freeText = []string{"--comment", "--principal", "--on-behalf-of", "--issuer", "--search", "--actor", "--approver", "--see", "--prefix", "--key of wrap", "--file of wrap",
	"command", "program", "--where of verify", "--where of list", "--reason of revoke", "--set of columns", "--columns of evidence", "--field of coverage", "--path of coverage"}

// readLater are files that a command reads only if it needs them, a program, and arguments that may also be addresses.
var readLater = []string{"--key-file", "--token-file", "--signer of agents", "bundle", "path"}

// A wrong value of each flag and argument is rejected with its name and what is expected, and with status 2.
func TestWrongValues(t *testing.T) {
	var p program
	parser, err := newParser(&p)
	if err != nil {
		t.Fatal(err)
	}
	excepted := slices.Concat(freeText, readLater)
	for _, leaf := range parser.Model.Leaves(true) {
		for _, v := range commandline.Values(leaf) {
			name, of := v.Name, " of "+leaf.Name
			if v.Flag != nil {
				name = "--" + name
			}
			if name == "--signer" && v.Enum == "" {
				of = " of agents"
			}
			if slices.Contains(excepted, name) || slices.Contains(excepted, name+of) {
				continue
			}
			args := append(strings.Fields(leaf.Path()), wrongValue(t, v)...)
			_, err := commandline.Parse(parser, args)
			if got := fmt.Sprint(err); !strings.Contains(got, name) || !strings.Contains(got, "expected ") && !strings.Contains(got, "must be ") {
				t.Errorf("%s: got %s", args, got)
			}
		}
	}
	if got := aps(t, "", "verify", "x", "--key", "y"); got.status != statusUnable ||
		!strings.HasPrefix(got.report, "aps: --key: expected a verifier key, NAME+HASH+KEY such as log.example/o/1+0a1b2c3d+AQ…, got \"y\"\n") {
		t.Errorf("got %+v", got)
	}
}

// wrongValue returns arguments with a value that is wrong for a flag or an argument.
func wrongValue(t *testing.T, v *kong.Value) []string {
	t.Helper()
	wrong := "no such value!"
	if v.Tag.Type == "path" || v.Tag.Type == "output" {
		file := written(t, "")
		wrong = filepath.Join(file, "below a file")
	}
	if v.Flag != nil {
		return []string{"--" + v.Name + "=" + wrong}
	}
	return []string{wrong}
}

// Files that are read later are named too, and so are files with other contents than is expected.
func TestMissingFiles(t *testing.T) {
	missing, garbage := filepath.Join(t.TempDir(), "missing"), written(t, "garbage")
	_, key, _ := logs(t)
	for name, args := range map[string][]string{
		"--policy":           {"verify", garbage, "--policy", garbage},
		"--keys":             {"verify", garbage, "--key", key, "--keys", garbage},
		"--directory-policy": {"verify", garbage, "--key", key, "--directory-policy", garbage},
		"--key-file":         {"sign", "--key-file", garbage, "--org", "018f6f3e-8d3c-4b5e-9a52-5f0c6d1e7a90", "--agent", "a", "--key-id", "k"},
		"--config":           {"mcp", "--config", garbage, "--service", "http://127.0.0.1:1"},
		"<file>":             {"policy", "push", "--url", "http://127.0.0.1:1", garbage},
		"--payload":          {"evaluate", "--tool", "x", "--org", "018f6f3e-8d3c-4b5e-9a52-5f0c6d1e7a90", "--agent", "a", "--payload", "@" + garbage},
	} {
		got := aps(t, "", args...)
		if got.status != statusUnable || !strings.Contains(got.report, name+": ") || !strings.Contains(got.report, "expected ") {
			t.Errorf("%s: got %d, %s", name, got.status, got.report)
		}
	}
	agent := []string{"--org", "018f6f3e-8d3c-4b5e-9a52-5f0c6d1e7a90", "--agent", "a", "--key-id", "k"}
	for name, args := range map[string][]string{
		"--key-file":   append([]string{"sign", "--key-file", missing}, agent...),
		"--token-file": append([]string{"mcp", "files", "--url", "http://127.0.0.1:1", "--service", "http://127.0.0.1:1", "--token-file", missing}, agent...),
		"<bundle>":     {"verify", missing},
		"<path>":       {"verify-release", missing},
	} {
		got := aps(t, "", args...)
		if got.status != statusUnable || !strings.Contains(got.report, name) || !strings.Contains(got.report, "expected ") || !strings.Contains(got.report, missing) {
			t.Errorf("%s: got %d, %s", name, got.status, got.report)
		}
	}
}
