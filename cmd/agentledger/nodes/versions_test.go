package nodes

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/log/anchor"
)

// An unknown kind of note, from a newer program, does not prevent the others from being stored.
func TestNotesOfANewerVersion(t *testing.T) {
	folder, err := anchor.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	n := &Node{options: Options{Anchors: folder, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}}
	slug := anchor.Note{Slug: true, Text: []byte("red\nlog.test/o/red\n")}
	err = anchors{n}.Put([]byte("z of a later version"), encodeNote(slug), nil)
	t.Logf("put: %v", err)
	var kept [][]byte
	for note, err := range (anchors{n}).Notes() {
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, note)
	}
	if !slices.ContainsFunc(kept, func(k []byte) bool { return string(k) == string(encodeNote(slug)) }) {
		t.Errorf("got %q, %v", kept, err)
	}
}
