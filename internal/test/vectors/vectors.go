// Package vectors reads the published corpus in testdata/vectors. The corpus shows by example which inputs every
// verifier of these logs must accept and which it must reject; its README specifies the format. The tests of this
// package generate the corpus and run our own verifiers, those of others and the one in Python on it.
//
// Invariants:
//
//   - The files are exactly the output of the generator in the tests, which uses fixed seeds and no clock:
//     go test ./internal/test/vectors -update writes them.
//   - Each vector of a kind has a unique name. The name of a rejected vector tells how it differs from a valid one.
//   - Every kind has vectors of both verdicts, so no verifier passes that accepts or rejects everything.
package vectors

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
)

// Verdicts.
const (
	Accept = "accept"
	Refuse = "refuse"
)

// File contains all vectors of one kind, from <kind>.json.
type File struct {
	Kind    string   `json:"kind"`
	About   string   `json:"about"`
	Vectors []Vector `json:"vectors"`
}

// Vector is one input with the expected verdict.
type Vector struct {
	Name    string         `json:"name"`
	Input   map[string]any `json:"input"` // texts and lists of texts
	Verdict string         `json:"verdict"`
	// Expect contains what an accepted input states: texts, lists, true, false, null.
	Expect map[string]any `json:"expect,omitzero"`
	// AcceptedBy names libraries that accept an input that must be rejected.
	AcceptedBy []string `json:"accepted_by,omitzero"`
}

// Read reads the vectors of one kind. root is the root directory of the repository.
func Read(root, kind string) (File, error) {
	return ReadFile(filepath.Join(root, "testdata", "vectors", kind+".json"))
}

// ReadFile reads the vectors in a file.
func ReadFile(name string) (File, error) {
	var f File
	text, err := os.ReadFile(name)
	if err != nil {
		return f, fmt.Errorf("read vectors: %w", err)
	}
	if err := json.Unmarshal(text, &f, json.RejectUnknownMembers(true)); err != nil {
		return f, fmt.Errorf("read vectors: %s: %w", filepath.Base(name), err)
	}
	return f, nil
}

// Text returns a text of the input. The input has a text that is not UTF-8 as base64, under <name>_b64.
func (v Vector) Text(name string) (string, error) {
	if s, ok := v.Input[name].(string); ok {
		return s, nil
	}
	s, ok := v.Input[name+"_b64"].(string)
	if !ok {
		return "", fmt.Errorf("%s: no %s", v.Name, name)
	}
	var raw []byte
	err := json.Unmarshal([]byte(`"`+s+`"`), &raw)
	return string(raw), err
}

// List returns a list of texts of the input, or none if there is no such list.
func (v Vector) List(name string) ([]string, error) {
	list, _ := v.Input[name].([]any)
	texts := make([]string, 0, len(list))
	for _, e := range list {
		s, ok := e.(string)
		if !ok {
			return nil, fmt.Errorf("%s: %s is not a list of texts", v.Name, name)
		}
		texts = append(texts, s)
	}
	return texts, nil
}
