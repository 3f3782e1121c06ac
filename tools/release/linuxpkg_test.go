package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// writePackages writes both forms of a package around a small program and returns them by name.
func writePackages(t *testing.T, name, arch string) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, name)
	if err := os.WriteFile(program, []byte("program"), 0o700); err != nil {
		t.Fatal(err)
	}
	names, err := linuxPackage{Name: name, Arch: arch, Version: "1.2.3-rc.1", Program: program,
		Source: "../..", Time: time.Unix(1_700_000_000, 0).UTC()}.WriteAll(dir)
	if err != nil {
		t.Fatal(err)
	}
	packages := make(map[string][]byte)
	for _, n := range names {
		if packages[n], err = os.ReadFile(filepath.Join(dir, n)); err != nil {
			t.Fatal(err)
		}
	}
	return packages
}

func TestWriteAll(t *testing.T) {
	for _, c := range []struct {
		name, arch string
		want       []string
	}{
		{"agentledger", "amd64", []string{"agentledger_1.2.3~rc.1-1_amd64.deb", "agentledger-1.2.3~rc.1-1.x86_64.rpm"}},
		{"aps", "arm64", []string{"aps_1.2.3~rc.1-1_arm64.deb", "aps-1.2.3~rc.1-1.aarch64.rpm"}},
	} {
		first, second := writePackages(t, c.name, c.arch), writePackages(t, c.name, c.arch)
		var names []string
		for name, content := range first {
			names = append(names, name)
			if !bytes.Equal(content, second[name]) {
				t.Errorf("two packages %s differ", name)
			}
		}
		slices.Sort(names)
		slices.Sort(c.want)
		if !slices.Equal(names, c.want) {
			t.Errorf("got %v, want %v", names, c.want)
		}
	}
}
