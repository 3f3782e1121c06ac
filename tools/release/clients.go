package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentledger/agentledger/clients"
)

// embedClients gives the clients in the exported source the version of the release, so that the service has packages of
// that version. If there is a key, it signs the packages: the service has the note.
func (r *release) embedClients() error {
	folder := filepath.Join(r.source.Dir, "clients")
	if err := setClientVersion(folder, r.version); err != nil {
		return fmt.Errorf("set version of clients: %w", err)
	}
	set, err := clients.Build(os.DirFS(folder))
	if err != nil {
		return err
	}
	note, err := r.noteFor(set.Sums)
	if err != nil {
		return fmt.Errorf("sign packages of clients: %w", err)
	}
	r.source.ClientsNote = base64.StdEncoding.EncodeToString(note)
	return nil
}

// noteFor returns the signed note of the packages, or nil if the release is unsigned. A release is built again without
// its key from its note.
func (r *release) noteFor(sums string) ([]byte, error) {
	switch {
	case r.noteFile != "":
		note, err := os.ReadFile(r.noteFile)
		if err == nil && !bytes.HasPrefix(note, []byte(sums+"\n")) {
			err = errors.New("the note is for other packages")
		}
		return note, err
	case r.keyFile != "":
		key, err := readSumsKey(r.keyFile)
		if err != nil {
			return nil, err
		}
		note, err := key.SignNote(sums)
		return note.Bytes(), err
	}
	return nil, nil
}

// checkNote checks that the linker has set the note in the service.
func (r *release) checkNote(t programTarget, file string) error {
	if t.Name != "agentledger" || r.source.ClientsNote == "" {
		return nil
	}
	program, err := os.ReadFile(file)
	if err == nil && !bytes.Contains(program, []byte(r.source.ClientsNote)) {
		err = fmt.Errorf("%s does not contain the note of the clients: is %s.note still its variable?", t, clientsPackage)
	}
	return err
}

// setClientVersion replaces the version of the clients in their sources.
func setClientVersion(folder, version string) error {
	old, err := clients.Build(os.DirFS(folder))
	if err != nil {
		return err
	}
	before, after := old.Find(clients.NPM).Version, version
	for _, name := range []string{"typescript/package.json", "typescript/README.md"} {
		if err := replaceIn(filepath.Join(folder, name), before, after); err != nil {
			return err
		}
	}
	before, after = old.Find(clients.Wheel).Version, pythonVersion(version)
	for _, name := range []string{"python/METADATA", "python/pyproject.toml", "python/README.md", "python/src/agentledger/__init__.py"} {
		if err := replaceIn(filepath.Join(folder, name), before, after); err != nil {
			return err
		}
	}
	return nil
}

// pythonVersion returns a version in the normal form of Python: 1.2.3-rc.1 is 1.2.3rc1.
func pythonVersion(version string) string {
	return strings.NewReplacer("-alpha.", "a", "-beta.", "b", "-rc.", "rc").Replace(version)
}

func replaceIn(file, before, after string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !bytes.Contains(text, []byte(before)) {
		return fmt.Errorf("%s does not contain the version %s", file, before)
	}
	return os.WriteFile(file, bytes.ReplaceAll(text, []byte(before), []byte(after)), 0o644)
}
