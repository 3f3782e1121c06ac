package docpage_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/test/docpage"
)

// readFile returns a file of the repository.
func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// maxServeFlags bounds the flags of serve.
const maxServeFlags = 30 // including the two files of TLS

// The reference of settings has the flags of serve, the sections of the settings file and the tuning settings.
func TestSettingsReference(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Settings of agentledger serve

    agentledger --config /etc/agentledger.json serve

A flag takes precedence over its environment variable, which takes precedence over the JSON settings file. In the file, a setting
has the name of its flag, with ` + "`-` or `_`" + `; unknown names are rejected. [Tuning](#tuning) settings are in the file only. A variable
` + "`AGENTLEDGER_*`" + ` that no command reads has no effect: the log has a warning, and ` + "`agentledger doctor`" + ` reports it.
Secrets come from files or the environment, because every user of the machine can read flags.

The settings file of a service behind a proxy:

` + "```json\n" + readFile(t, "deploy/agentledger.json") + "```" + `

Variables without a flag, such as secrets, and the flags of all other commands are in the reference of [agentledger](agentledger.md#environment-variables). This page is generated from the program.

## Flags and variables

| Flag | Variable | Default | |
|---|---|---|---|
`)
	var c config.Serve
	p, err := kong.New(&c, config.ParserOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	flags := slices.DeleteFunc(p.Model.Flags, func(f *kong.Flag) bool { return f.Name == "help" })
	if n := len(flags); n > maxServeFlags {
		t.Errorf("serve has %d flags, want at most %d: settings that few operators change belong to config.Tuning", n, maxServeFlags)
	}
	for _, flag := range flags {
		if len(flag.Envs) != 1 {
			t.Errorf("--%s: got variables %q, want one", flag.Name, flag.Envs)
		}
		help := flag.Help
		if flag.Enum != "" {
			help += " One of " + strings.ReplaceAll(flag.Enum, ",", ", ") + "."
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", docpage.Code("--"+flag.Name), docpage.Code(strings.Join(flag.Envs, ", ")), docpage.Code(flag.Default), docpage.Cell(help))
	}
	b.WriteString("\n## Sign-in at OpenID providers\n\n`openid` in the settings file is a list of objects:\n\n| Member | |\n|---|---|\n")
	writeFields(t, &b, root+"/internal/config/openid.go", "providerEntry")
	b.WriteString("\n## Certificates by ACME\n\n`acme` in the settings file is an object. The main listener gets its certificate from this server, instead of `--tls-cert`:\n\n| Member | |\n|---|---|\n")
	writeFields(t, &b, root+"/internal/config/acme.go", "ACME")
	b.WriteString(`
## Tuning

These settings are members of ` + "`tuning`" + ` in the settings file, so that one file shows everything in which a service differs from the
defaults. Numbers are JSON numbers; durations are strings such as ` + "`\"90s\"`" + `. A value outside of its range is rejected at the start.

` + "```json\n" + `{"tuning": {"leaf_cache_mib": 512, "request_timeout": "10s", "witness_fail": "closed"}}` + "\n```" + `

| Key | Default | Range | Meaning | Who changes it, and when |
|---|---|---|---|---|
`)
	for _, s := range config.TuningReference() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", s.Key, s.Default, s.Range, docpage.Cell(unlinked(s.Meaning)), docpage.Cell(s.Change))
	}
	docpage.Check(t, root, "settings", b.String())
}

// unlinked returns a text in Markdown without the targets of its links.
func unlinked(text string) string {
	return regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(text, "$1")
}

// writeFields writes a row for each field of a struct that is decoded from JSON, with its comment.
func writeFields(t *testing.T, b *strings.Builder, file, name string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	fields := 0
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != name {
			return true
		}
		for _, field := range spec.Type.(*ast.StructType).Fields.List {
			member := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
			if field.Comment.Text() == "" {
				t.Errorf("%s: %s.%s has no comment", file, name, member)
			}
			fmt.Fprintf(b, "| `%s` | %s |\n", member, docpage.Cell(field.Comment.Text()))
			fields++
		}
		return false
	})
	if fields == 0 {
		t.Errorf("%s has no struct %s", file, name)
	}
}

// alert is a rule of deploy/alerts.yaml.
type alert struct{ name, expr, duration, severity, summary, runbook string }

func readAlerts(t *testing.T) (alerts []alert) {
	t.Helper()
	text := readFile(t, "deploy/alerts.yaml")
	for _, rule := range strings.Split(text, "- alert: ")[1:] {
		name, rest, _ := strings.Cut(rule, "\n")
		a := alert{name: name}
		lines := strings.Split(rest, "\n")
		for i := range lines {
			key, value, _ := strings.Cut(strings.TrimSpace(lines[i]), ":")
			value = strings.TrimSpace(value)
			if strings.HasPrefix(value, "|") || strings.HasPrefix(value, ">") {
				value = ""
				indent := len(lines[i]) - len(strings.TrimLeft(lines[i], " "))
				for _, more := range lines[i+1:] {
					if len(more)-len(strings.TrimLeft(more, " ")) <= indent {
						break
					}
					value += strings.TrimSpace(more) + " "
				}
			}
			if strings.HasPrefix(value, "'") {
				value = strings.ReplaceAll(strings.Trim(value, "'"), "''", "'")
			}
			switch key {
			case "expr":
				a.expr = strings.TrimSpace(value)
			case "for":
				a.duration = value
			case "labels":
				a.severity = strings.Trim(strings.TrimPrefix(value, "{severity:"), " }")
			case "summary":
				a.summary = value
			case "runbook":
				a.runbook = value
			}
		}
		if a.expr == "" || a.severity == "" || a.summary == "" || a.runbook == "" {
			t.Errorf("the alert %s is not read: %+v", name, a)
		}
		alerts = append(alerts, a)
	}
	if len(alerts) < 50 {
		t.Errorf("found %d alerts", len(alerts))
	}
	return alerts
}

// The reference of alerts has each rule of the alerts file.
func TestAlertsReference(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Alerts

    promtool check rules deploy/alerts.yaml

` + "`page`" + ` needs somebody now, ` + "`ticket`" + ` on a working day. Each alert has a runbook, which the service also serves below its public URL at
` + "`/help/runbooks`" + `. This page is generated from ` + "[`deploy/alerts.yaml`](../../deploy/alerts.yaml)" + `.
`)
	variable := regexp.MustCompile(`\{\{ *([^}]*?) *\}\}`)
	for _, a := range readAlerts(t) {
		duration := ""
		if a.duration != "" {
			duration = ", for " + a.duration
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s%s. %s\n\n```\n%s\n```\n", a.name, a.severity, duration, variable.ReplaceAllString(a.summary, "`$1`"), a.expr)
	}
	docpage.Check(t, root, "alerts", b.String())
}
