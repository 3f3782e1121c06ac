//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Files that decide what is trusted are rejected if every user can change them.
func TestOpenSettingsAreRejected(t *testing.T) {
	dir, key, _ := logs(t)
	bundle := filepath.Join(dir, "full.json")
	policy, keys := written(t, "log "+key+"\nquorum none\n"), savedKeys(t, key)
	servers := written(t, `{"servers":{"files":{"command":["true"]}}}`)
	for name, tc := range map[string]struct {
		file string
		args []string
	}{
		"policy":           {policy, []string{"verify", bundle, "--policy", policy}},
		"list of keys":     {keys, []string{"verify", bundle, "--key", key, "--keys", keys}},
		"directory policy": {policy, []string{"verify", bundle, "--key", key, "--directory-policy", policy}},
		"monitor":          {policy, []string{"monitor", "--once", "--url", "http://127.0.0.1:1", "--tries", "1", "--policy", policy, "--state", filepath.Join(dir, "state")}},
		"MCP servers":      {servers, []string{"mcp", "--config", servers, "--state", dir}},
	} {
		for mode, refused := range map[os.FileMode]bool{0o644: false, 0o666: true} {
			if err := os.Chmod(tc.file, mode); err != nil {
				t.Fatal(err)
			}
			got := aps(t, "", tc.args...)
			if reported := strings.Contains(got.report, "every user can change it"); reported != refused || refused && got.status != 2 {
				t.Errorf("%s, mode %o: got %+v", name, mode, got)
			}
		}
		if err := os.Chmod(tc.file, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A started program can read the command line of its parent.
func TestTokenFlagIsRejected(t *testing.T) {
	for name, args := range map[string][]string{
		"wrap": {"wrap", "--token", "apl_live_secret", "--", "true"},
		"mcp":  {"mcp", "files", "--token", "apl_live_secret", "--", "true"},
	} {
		got := aps(t, "", args...)
		if got.status == 0 || !strings.Contains(got.report, "--token is not accepted here") || strings.Contains(got.report, "apl_live_secret") {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
