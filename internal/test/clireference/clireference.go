// Package clireference keeps the documents of command lines as their parsers describe them.
package clireference

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var update = flag.Bool("update", false, "write the reference of the command line")

// Check reports an error if docs/reference has not the reference of a program. With -update it writes the reference.
func Check(t *testing.T, name string, program *kong.Application) {
	t.Helper()
	path := "../../docs/reference/" + name + ".md"
	want := strings.ReplaceAll(page(program), filepath.Base(os.Args[0]), name) // in tests, the parser is named after the running program
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the program describes: run the test with -update", path)
	}
}

// page returns the reference of a program: its commands in order, each with its arguments and flags.
func page(program *kong.Application) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# `%s`: commands and flags\n\n", program.Name)
	fmt.Fprintf(&b, "%s `%s COMMAND --help` prints the same. This page is generated from the program.\n", program.Help, program.Name)
	writeValues(&b, "Flags of all commands", program.Node.AllFlags(true), nil)
	for _, leaf := range program.Leaves(true) {
		fmt.Fprintf(&b, "\n## `%s`\n\n%s\n", leaf.FullPath(), cell(leaf.Help))
		if leaf.Detail != "" {
			fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(leaf.Detail))
		}
		flags := leaf.AllFlags(true)
		writeValues(&b, "Flag", flags[min(1, len(flags)):], leaf.Positional)
	}
	return b.String()
}

func writeValues(b *strings.Builder, title string, groups [][]*kong.Flag, arguments []*kong.Positional) {
	header := fmt.Sprintf("\n| %s | Variable | Default | |\n|---|---|---|---|\n", title)
	row := func(name string, variables []string, v *kong.Value) {
		b.WriteString(header)
		header = ""
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", code(name), code(strings.Join(variables, ", ")), code(v.Default), cell(v.Help))
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

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + cell(text) + "`"
}

// cell returns a text that stays within a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}
