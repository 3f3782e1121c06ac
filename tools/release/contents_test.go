package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/tools/release/archive"
)

// headOf returns the header of a program for another platform, without code.
func headOf(begin ...byte) []byte { return append(begin, make([]byte, 256)...) }

func elfOf(machine byte) []byte {
	head := headOf(0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, machine, 0, 1)
	head[52], head[54], head[58] = 64, 56, 64
	return head
}

func TestCheckProgram(t *testing.T) {
	machO := func(cpu byte) []byte {
		return headOf(0xcf, 0xfa, 0xed, 0xfe, cpu, 0, 0, 1, 0, 0, 0, 0, 2, 0, 0, 0)
	}
	coff := func(low, high byte) []byte {
		return headOf(low, high, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0)
	}
	programs := map[string][]byte{"linux/amd64": elfOf(62), "linux/arm64": elfOf(183), "darwin/amd64": machO(7),
		"darwin/arm64": machO(12), "windows/amd64": coff(0x64, 0x86), "windows/arm64": coff(0x64, 0xaa)}
	for platform := range programs {
		for other, content := range programs {
			goos, arch, _ := strings.Cut(platform, "/")
			err := checkProgram(content, programTarget{Name: "aps", OS: goos, Arch: arch})
			if (err == nil) != (platform == other) {
				t.Errorf("%s for %s: got %v", other, platform, err)
			}
		}
	}
	if err := checkProgram([]byte("#!/bin/sh\n"), programTarget{Name: "aps", OS: "linux", Arch: "amd64"}); err == nil {
		t.Error("a script: got no error")
	}
}

func TestCheck(t *testing.T) {
	self := filepath.Join(t.TempDir(), "aps")
	if err := os.WriteFile(self, elfOf(62), 0o600); err != nil {
		t.Fatal(err)
	}
	target := programTarget{Name: "aps", OS: "linux", Arch: "amd64"}
	name := "aps_1.2.3_linux_amd64"
	files := []archive.File{{Name: name + "/aps", Source: self, Mode: 0o755}}
	for _, d := range target.Documents() {
		files = append(files, archive.File{Name: name + "/" + filepath.Base(d), Source: "contents.go", Mode: 0o644})
	}
	other := append(files[:len(files):len(files)], archive.File{Name: name + "/more", Source: "contents.go", Mode: 0o644})
	plain := append([]archive.File{{Name: name + "/aps", Source: self, Mode: 0o644}}, files[1:]...)
	for label, c := range map[string]struct {
		files []archive.File
		good  bool
	}{"as it should be": {files, true}, "one file more": {other, false}, "one less": {files[:2], false},
		"a program that can't be run": {plain, false}, "none": {nil, false}} {
		dir := t.TempDir()
		if err := archive.WriteTarGz(filepath.Join(dir, name+".tar.gz"), c.files, time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		if err := checkContents(dir, "1.2.3", []programTarget{target}); (err == nil) != c.good {
			t.Errorf("%s: got %v", label, err)
		}
	}
}
