package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/agentledger/agentledger/internal/commandline"
	"github.com/agentledger/agentledger/internal/config"
)

// freeText are the flags that accept any text. The service checks names and passwords.
var freeText = []string{"--reason", "--name", "--admin-password"}

// A wrong value of each flag and argument is rejected with its name and what is expected.
func TestWrongValues(t *testing.T) {
	var c commands
	parser, err := kong.New(&c, config.ParserOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, leaf := range parser.Model.Leaves(true) {
		for _, v := range commandline.Values(leaf) {
			wrong, args := "no such\nvalue!", strings.Fields(leaf.Path())
			if slices.Contains([]string{"path", "output", "datafolder"}, v.Tag.Type) {
				wrong = filepath.Join(file, "below a file")
			}
			name := v.Name
			if v.Flag != nil {
				name, wrong = "--"+name, "--"+name+"="+wrong
			}
			if slices.Contains(freeText, name) || leaf.Name == "complete" {
				continue
			}
			_, err := commandline.Parse(parser, append(args, wrong))
			if got := fmt.Sprint(err); !strings.Contains(got, name) || !strings.Contains(got, "expected ") && !strings.Contains(got, "must be ") {
				t.Errorf("%q: got %s", append(args, wrong), got)
			}
		}
	}
}

// The program exits with 2, and no error contains the value of a variable, which may be a secret.
func TestWrongVariables(t *testing.T) {
	t.Setenv("AGENTLEDGER_STORAGE", "mysql://user:sesame@db/ledgers")
	t.Setenv("AGENTLEDGER_DATA", t.TempDir())
	var out, errs bytes.Buffer
	status := runProgram(t.Context(), []string{"fsck"}, &out, &errs)
	want := "agentledger: --storage: expected the address of a PostgreSQL database, postgres://USER@HOST/DATABASE " +
		"(from the environment variable AGENTLEDGER_STORAGE)\n"
	if status != exitError || errs.String() != want {
		t.Errorf("got %d, %s", status, errs.String())
	}
}

// Files with other contents than is expected are reported with the name of their flag.
func TestMalformedFiles(t *testing.T) {
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"--checkpoint":        {"adopt", "--checkpoint", garbage},
		"--checkpoint: ":      {"succeed", "--organization", "red", "--reason", "x", "--checkpoint", garbage},
		"--bundle":            {"policy", "replay", "--bundle", garbage},
		"--record":            {"policy", "replay", "--record", garbage, "--envelope", garbage},
		"settings file":       {"--config", garbage, "fsck"},
		"--config: expected ": {"--config", garbage + "x", "fsck"},
	} {
		var out, errs bytes.Buffer
		status := runProgram(t.Context(), args, &out, &errs)
		if status != exitError || !strings.HasPrefix(errs.String(), "agentledger: "+name) || !strings.Contains(errs.String(), "expected ") {
			t.Errorf("%s: got %d, %s", name, status, errs.String())
		}
	}
}

// Files and values that serve checks when it starts are reported with the name of their flag.
func TestWrongSettingsOfServe(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for name, value := range map[string]string{
		"--public-url": "http://log.example?x=1", "--tls-cert": missing, "--witness-policy-file": missing, "--environment": "NOT",
		"--master-key-file": t.TempDir(), "--older-master-key-file": missing, "--platform-secret-file": t.TempDir(),
		"--smtp": "smtps://mail.example?x=1", "--archive": "s3://bucket/x?y=z", "--trace-endpoint": "http://",
		"--plan-limits": "free.x=1", "--directory": "x", "--listen": "nowhere.invalid:0", "--id-listen": "nowhere.invalid:0", "--metrics-listen": "nowhere.invalid:0",
	} {
		var out, errs bytes.Buffer
		args := []string{"serve", "--data", filepath.Join(t.TempDir(), "data"), "--public-url=https://log.example", "--listen=127.0.0.1:0",
			"--id-listen=127.0.0.1:0", "--metrics-listen=", name + "=" + value}
		if name == "--tls-cert" {
			args = append(args, "--tls-key="+missing)
		}
		status := runProgram(t.Context(), args, &out, &errs)
		if status != exitError || !strings.Contains(errs.String(), name) {
			t.Errorf("%s: got %d, %s", name, status, errs.String())
		}
	}
}
