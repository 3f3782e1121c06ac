package main

import (
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/agentledger/agentledger/internal/config"
)

var (
	// documentedCommand is a command of the service in a code span, or after the prompt in a code block.
	documentedCommand = regexp.MustCompile("(?m)(?:`|^ *[$#] )(?:sudo -u agentledger (?:--preserve-env=[^ ]+ )?)?agentledger (?:--config [^ `]+ )?([a-z][a-z-]*[^`\n#|]*)")
	documentedFlag    = regexp.MustCompile(`(?:^|[ \[(])--([a-z][a-z-]+)`)
	documentedMetric  = regexp.MustCompile("`(agentledger_[a-z_]+)")
)

// Commands, flags and metrics that a document mentions exist.
func TestDocumentedNames(t *testing.T) {
	var c commands
	parser, err := kong.New(&c, config.ParserOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	flags := make(map[string][]string) // of each command
	for _, command := range parser.Model.Children {
		flags[command.Name] = namesOfFlags(command)
	}
	var documents []string
	for _, pattern := range []string{"../../docs/*.md", "../../docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, found...)
	}
	reference, commands := readFile(t, "../../docs/reference/metrics.md"), 0
	for _, document := range append(documents, "../../README.md") {
		text := strings.ReplaceAll(readFile(t, document), "\\\n", " ") // a command on several lines
		for _, m := range documentedCommand.FindAllStringSubmatch(text, -1) {
			words := strings.Fields(m[1])
			if words[0] == "hash-passwords" { // the service starts it
				continue
			}
			known, ok := flags[words[0]]
			if !ok {
				t.Errorf("%s: %q: there is no command %s", filepath.Base(document), m[0], words[0])
				continue
			}
			commands++
			for _, flag := range documentedFlag.FindAllStringSubmatch(m[1], -1) {
				if !slices.Contains(known, flag[1]) {
					t.Errorf("%s: %q: %s has no flag --%s", filepath.Base(document), m[0], words[0], flag[1])
				}
			}
		}
		for _, m := range documentedMetric.FindAllStringSubmatch(text, -1) {
			if strings.HasPrefix(m[1], "agentledger_monitor_") || m[1] == "agentledger_session" { // of aps monitor; a cookie
				continue
			}
			if !strings.Contains(reference, "`"+m[1]) && !strings.Contains(reference, "`"+strings.TrimSuffix(m[1], "_bucket")) {
				t.Errorf("%s: docs/reference/metrics.md lacks %s", filepath.Base(document), m[1])
			}
		}
	}
	if commands < 60 {
		t.Errorf("found %d commands", commands)
	}
}

var (
	logTable   = regexp.MustCompile(`(?s)\| Line \| Level \| To do \|\n(.*?)\n\n`)
	firstSpans = regexp.MustCompile("(?m)^\\| (`[^|]+)")
	span       = regexp.MustCompile("`([^`…]+)")
)

// Log lines that the manual explains are in the sources of the service.
func TestDocumentedLogLines(t *testing.T) {
	table := logTable.FindStringSubmatch(readFile(t, "../../docs/operate/monitor.md"))
	if table == nil {
		t.Fatal("docs/operate/monitor.md has no table of log lines")
	}
	missing := make(map[string]bool)
	for _, row := range firstSpans.FindAllStringSubmatch(table[1], -1) {
		for i, cell := range span.FindAllString(row[1], -1) {
			if i%2 == 0 { // text between two spans is not a name
				missing[strings.TrimRight(cell[1:], ": ")] = true
			}
		}
	}
	if len(missing) < 15 {
		t.Errorf("found %d lines", len(missing))
	}
	for _, folder := range []string{".", "../../internal", "../../log", "../../storage", "../../identity", "../../ingest"} {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				source := readFile(t, path)
				maps.DeleteFunc(missing, func(line string, _ bool) bool { return strings.Contains(source, line) })
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for line := range missing {
		t.Errorf("no source logs %q", line)
	}
}

func namesOfFlags(n *kong.Node) (names []string) {
	for _, f := range n.Flags {
		names = append(names, f.Name)
	}
	for _, child := range n.Children {
		names = append(names, namesOfFlags(child)...)
	}
	return names
}
