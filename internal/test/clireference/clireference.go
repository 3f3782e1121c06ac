// Package clireference keeps the documents of command lines as their parsers describe them.
package clireference

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/agentledger/agentledger/internal/test/docpage"
)

// CommonNotes describe what the command lines of both programs have in common.
const CommonNotes = `## Command line

- Flags may precede the command or follow it.
- ` + "`completion bash`, `completion zsh` and `completion fish`" + ` print a script that completes commands, flags, words and files.
- On a terminal, lists have headers and aligned columns, outcomes have colors, and commands that take longer than two seconds show their
  progress. Files and pipes get neither.
- A value that is not valid is rejected before anything is done, with the name of its flag and the expected form. If it comes from the
  environment, the error names the variable and omits the value.
- A flag that takes a JSON object also takes ` + "`@FILE`, and `@-`" + ` for standard input.
`

// Variable is an environment variable that a program reads apart from those of its flags.
type Variable struct{ Name, Meaning string }

// Check reports an error if docs/reference has not the reference of a program, which ends with notes in Markdown. With -update
// it writes the reference.
func Check(t *testing.T, name string, program *kong.Application, notes string, others ...Variable) {
	t.Helper()
	want := strings.ReplaceAll(page(program, notes, others), filepath.Base(os.Args[0]), name) // in tests, the parser is named after the running program
	docpage.Check(t, "../..", name, want)
}

// page returns the reference of a program: its commands in order, each with its arguments and flags, its environment
// variables, and notes.
func page(program *kong.Application, notes string, others []Variable) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# `%s`: commands and flags\n\n", program.Name)
	fmt.Fprintf(&b, "%s `%s COMMAND --help` prints the same. This page is generated from the program.\n", program.Help, program.Name)
	writeValues(&b, "Flags of all commands", program.AllFlags(true), nil)
	for _, leaf := range program.Leaves(true) {
		fmt.Fprintf(&b, "\n## `%s`\n\n%s\n", leaf.FullPath(), docpage.Cell(leaf.Help))
		if leaf.Detail != "" {
			fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(leaf.Detail))
		}
		flags := leaf.AllFlags(true)
		writeValues(&b, "Flag", flags[min(1, len(flags)):], leaf.Positional)
	}
	writeVariables(&b, program, others)
	b.WriteString("\n" + notes)
	return b.String()
}

func writeValues(b *strings.Builder, title string, groups [][]*kong.Flag, arguments []*kong.Positional) {
	header := fmt.Sprintf("\n| %s | Variable | Default | |\n|---|---|---|---|\n", title)
	row := func(name string, variables []string, v *kong.Value) {
		b.WriteString(header)
		header = ""
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", docpage.Code(name), docpage.Code(strings.Join(variables, ", ")), docpage.Code(v.Default), docpage.Cell(v.Help))
	}
	for _, a := range arguments {
		row(a.Summary(), nil, a)
	}
	for _, group := range groups {
		for _, f := range group {
			if f.Name != "help" {
				row(f.Summary(), f.Envs, f.Value)
			}
		}
	}
}

// writeVariables writes all environment variables of a program, each with the flags that it sets.
func writeVariables(b *strings.Builder, program *kong.Application, others []Variable) {
	meanings := make(map[string]string)
	for _, o := range others {
		meanings[o.Name] = o.Meaning
	}
	flags := make(map[string][]string)                                        // by variable
	_ = kong.Visit(program, func(node kong.Visitable, next kong.Next) error { // the visitor returns no error
		if flag, ok := node.(*kong.Flag); ok {
			for _, variable := range flag.Envs {
				flags[variable] = append(flags[variable], "`--"+flag.Name+"`")
			}
		}
		return next(nil)
	})
	for variable, names := range flags {
		slices.Sort(names)
		text := "sets " + strings.Join(slices.Compact(names), ", ")
		if meanings[variable] != "" {
			text += ". " + meanings[variable]
		}
		meanings[variable] = text
	}
	b.WriteString("\n## Environment variables\n\n| Variable | |\n|---|---|\n")
	for _, variable := range slices.Sorted(maps.Keys(meanings)) {
		fmt.Fprintf(b, "| %s | %s |\n", docpage.Code(variable), docpage.Cell(meanings[variable]))
	}
}
