package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/cmd/aps/flags"
	"github.com/agentledger/agentledger/id"
)

// settingsCase is a case of testdata/settings.json.
type settingsCase struct {
	Name, Text string
	Value      *string // nil if aps refuses the file
	Client     string
}

func settingsCases(t *testing.T) []settingsCase {
	t.Helper()
	text, err := os.ReadFile("../../testdata/settings.json")
	if err != nil {
		t.Fatal(err)
	}
	var read struct{ Cases []settingsCase }
	if err := json.Unmarshal(text, &read); err != nil || len(read.Cases) < 40 {
		t.Fatalf("%v: got %d cases", err, len(read.Cases))
	}
	return read.Cases
}

// A file with settings has the values that a shell gives them, and files that need a shell are refused.
func TestSettingsMatchTheShell(t *testing.T) {
	for _, tc := range settingsCases(t) {
		got, err := parseSettings(tc.Text)
		if tc.Value == nil {
			if err == nil {
				t.Errorf("%s: got %q, want a refusal", tc.Name, got)
			} else if strings.Contains(err.Error(), "HOME") || !strings.HasPrefix(err.Error(), "line 1: ") {
				t.Errorf("%s: got %q", tc.Name, err)
			}
			continue
		}
		if err != nil || got["APS_KEY"] != *tc.Value {
			t.Errorf("%s: got %q, %v, want %q", tc.Name, got["APS_KEY"], err, *tc.Value)
		}
		file := filepath.Join(t.TempDir(), "agent.env")
		if err := os.WriteFile(file, []byte(tc.Text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"sh", "bash"} {
			path, err := exec.LookPath(name)
			if err != nil && name != "sh" {
				continue
			}
			shell := exec.CommandContext(t.Context(), path, "-euc", `. "$0"; printf %s "${APS_KEY-}"`, file)
			shell.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8"}
			if out, err := shell.CombinedOutput(); err != nil || string(out) != *tc.Value {
				t.Errorf("%s: %s has %q, %v, want %q", tc.Name, name, out, err, *tc.Value)
			}
		}
	}
	if got, err := parseSettings("APS_KEY='a'\r\nAPS_ORG=b\r\n"); err != nil || got["APS_KEY"] != "a" || got["APS_ORG"] != "b" {
		t.Errorf("carriage returns: got %q, %v", got, err)
	}
}

// The key of the environment signs, is missing if it is empty, or is refused with the name of its variable.
func TestKeyOfTheEnvironment(t *testing.T) {
	of := flags.Signer{Names: flags.Names{Org: id.Organization{1}, Agent: "agt_a", KeyID: "key_a"}}
	for _, tc := range settingsCases(t) {
		if tc.Value == nil {
			continue
		}
		t.Setenv("APS_KEY", *tc.Value)
		_, end, err := of.OpenSigner()
		got := "signs"
		switch {
		case err == nil:
			end()
		case strings.HasPrefix(err.Error(), "APS_KEY: "):
			got = "refused"
		case strings.Contains(err.Error(), "(APS_KEY_FILE)") && strings.Contains(err.Error(), "APS_KEY,"):
			got = "none"
		default:
			got = err.Error()
		}
		if got != tc.Client || err != nil && *tc.Value != "" && strings.Contains(err.Error(), *tc.Value) {
			t.Errorf("%s: got %q, %v, want %q", tc.Name, got, err, tc.Client)
		}
	}
}

// A variable that has a value takes precedence over the file, and an empty one does not.
func TestEnvFilePrecedence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.env")
	if err := os.WriteFile(file, []byte("APS_AGENT=agt_file\nAPS_KEY=of-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("APS_ENV_FILE", file)
	t.Setenv("APS_AGENT", "agt_env")
	t.Setenv("APS_KEY", "")
	if err := loadEnvFile(); err != nil || os.Getenv("APS_AGENT") != "agt_env" || os.Getenv("APS_KEY") != "of-file" {
		t.Errorf("%v: got %s, %s", err, os.Getenv("APS_AGENT"), os.Getenv("APS_KEY"))
	}
}
