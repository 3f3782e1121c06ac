package monitor

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/verify"
)

// findingSummary is the content of finding.json in the folder of a finding.
type findingSummary struct {
	Kind    Kind       `json:"kind"`
	What    string     `json:"what"`
	Origin  id.Origin  `json:"origin"`
	FoundAt id.Instant `json:"found_at"`
	Keys    []string   `json:"keys"` // the keys that signed the heads
	Known   Evidence   `json:"known"`
	Shown   Evidence   `json:"shown"`
}

// keepEvidence stores the evidence of a finding once. A later check with the same finding leaves
// the files unchanged. It returns other errors unchanged.
func (m *Monitor) keepEvidence(ctx context.Context, err error) error {
	var f *Finding
	if !errors.As(err, &f) {
		return err
	}
	files, failed := m.evidenceFiles(f)
	if m.attach != nil && failed == nil {
		var more map[string][]byte
		more, failed = m.attach(ctx, f.Known)
		maps.Copy(files, more)
	}
	if failed == nil {
		f.Folder, failed = keepEvidenceFiles(m.Evidence,
			fmt.Sprintf("%s-%d-%d", f.Kind, f.Known.TreeSize, f.Shown.TreeSize), files)
	}
	if failed != nil {
		return fmt.Errorf("%w; the evidence could not be stored: %w", f, failed)
	}
	return f
}

// evidenceFiles returns the contents of the evidence files by name.
func (m *Monitor) evidenceFiles(f *Finding) (map[string][]byte, error) {
	a := findingSummary{Kind: f.Kind, What: f.What, Origin: m.origin, FoundAt: id.InstantOf(m.Clock()),
		Known: f.Known, Shown: f.Shown}
	for _, k := range m.knownKeys() {
		a.Keys = append(a.Keys, k.Key.String())
	}
	if m.Predecessor != nil {
		for _, k := range m.Predecessor.Keys {
			a.Keys = append(a.Keys, k.String())
		}
	}
	files := map[string][]byte{"known.note": f.Known.Note, "shown.note": f.Shown.Note}
	maps.Copy(files, f.Content)
	return files, errors.Join(addJSONFile(files, accountFile, a), addProofFile(files, f.Proof))
}

const accountFile = "finding.json"

func addProofFile(files map[string][]byte, proof *verify.Consistency) error {
	if proof == nil {
		return nil
	}
	return addJSONFile(files, "proof.json", proof)
}

func addJSONFile(files map[string][]byte, name string, v any) error {
	text, err := json.Marshal(v, jsontext.WithIndent("  "))
	files[name] = append(text, '\n')
	return err
}

// keepEvidenceFiles creates a folder with the files and returns its path. The folder's name ends in
// a hash over all files except finding.json.
func keepEvidenceFiles(parent, name string, files map[string][]byte) (string, error) {
	sum := sha256.New()
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if file != accountFile {
			fmt.Fprintf(sum, "%s %d\n%s", file, len(files[file]), files[file])
		}
	}
	folder := filepath.Join(parent, fmt.Sprintf("%s-%.8x", name, sum.Sum(nil)))
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	}
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", err
	}
	next, err := os.MkdirTemp(parent, ".keeping-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(next) // has no effect after the rename
	if err := writeFiles(next, files); err != nil {
		return "", err
	}
	if err := durable.Rename(next, folder); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return folder, nil
}

// writeFiles durably writes the files that have content.
func writeFiles(folder string, files map[string][]byte) error {
	for name, content := range files {
		if content == nil {
			continue
		}
		if err := durable.ReplaceFile(filepath.Join(folder, name), content); err != nil {
			return err
		}
	}
	return nil
}
