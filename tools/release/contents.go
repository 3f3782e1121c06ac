package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// checkContents checks the archive of each target in the folder of a release: it contains exactly the expected files,
// each a regular file in a single folder, and its program is for the platform of the archive. A Linux program must be
// static.
func checkContents(dir, version string, targets []programTarget) error {
	for _, t := range targets {
		name := t.Name + "_" + version + "_" + t.OS + "_" + t.Arch
		read, file := readTarGz, name+".tar.gz"
		if t.OS == "windows" {
			read, file = readZip, name+".zip"
		}
		files, err := read(filepath.Join(dir, file))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := checkFiles(files, name, t); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

func checkFiles(files map[string][]byte, folder string, t programTarget) error {
	want := []string{folder + "/" + t.Executable()}
	for _, d := range t.Documents() {
		want = append(want, folder+"/"+filepath.Base(d))
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	for name, content := range files {
		if len(content) == 0 {
			return fmt.Errorf("%s is empty", name)
		}
	}
	return checkProgram(files[folder+"/"+t.Executable()], t)
}

// checkProgram checks the platform of a program by its file format.
func checkProgram(content []byte, t programTarget) error {
	amd64 := t.Arch == "amd64"
	in := bytes.NewReader(content)
	switch t.OS {
	case "linux":
		f, err := elf.NewFile(in)
		if err != nil {
			return err
		}
		if want := choose(amd64, elf.EM_X86_64, elf.EM_AARCH64); f.Machine != want || f.Type != elf.ET_EXEC {
			return fmt.Errorf("%s: is %s %s, want an executable for %s", t, f.Type, f.Machine, want)
		}
		if needs, err := f.ImportedLibraries(); err != nil || len(needs) > 0 {
			return fmt.Errorf("%s: requires %v, %v", t, needs, err)
		}
	case "darwin":
		f, err := macho.NewFile(in)
		if err != nil {
			return err
		}
		if want := choose(amd64, macho.CpuAmd64, macho.CpuArm64); f.Cpu != want || f.Type != macho.TypeExec {
			return fmt.Errorf("%s: is %s %s, want an executable for %s", t, f.Type, f.Cpu, want)
		}
	case "windows":
		f, err := pe.NewFile(in)
		if err != nil {
			return err
		}
		want := choose[uint16](amd64, pe.IMAGE_FILE_MACHINE_AMD64, pe.IMAGE_FILE_MACHINE_ARM64)
		if f.Machine != want || f.Characteristics&pe.IMAGE_FILE_EXECUTABLE_IMAGE == 0 {
			return fmt.Errorf("%s: is for machine %#x, want %#x", t, f.Machine, want)
		}
	default:
		return fmt.Errorf("%s: no such platform", t)
	}
	return nil
}

func choose[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}

func readTarGz(name string) (map[string][]byte, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	files := make(map[string][]byte)
	for r := tar.NewReader(unpacked); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if head.Typeflag != tar.TypeReg || (head.Mode&0o111 != 0) != isProgram(head.Name) {
			return nil, fmt.Errorf("%s: is not a regular file, or has mode %o", head.Name, head.Mode)
		}
		if files[head.Name], err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
}

func readZip(name string) (map[string][]byte, error) {
	r, err := zip.OpenReader(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	files := make(map[string][]byte)
	for _, f := range r.File {
		if !f.Mode().IsRegular() {
			return nil, fmt.Errorf("%s: is not a regular file", f.Name)
		}
		part, err := f.Open()
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(part)
		if err := errors.Join(err, part.Close()); err != nil {
			return nil, err
		}
		files[f.Name] = content
	}
	return files, nil
}

// isProgram reports whether a file of an archive for Linux or macOS is executable.
func isProgram(name string) bool {
	return strings.HasSuffix(name, "/aps") || strings.HasSuffix(name, "/agentledger")
}
