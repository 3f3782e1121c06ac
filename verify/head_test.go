package verify

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

func (l *testLog) head(size int) Head {
	c := l.checkpoint(size)
	var last id.Hash
	if size > 0 {
		last = l.events[size-1].leaf
	}
	return NewHead(l.slug, c, []byte(l.note(l.key, c)), last, testStart)
}

func TestCheckHead(t *testing.T) {
	for n := byte(1); n <= 2; n++ {
		l := newTestLog(t, n, 20)
		for size := range 21 {
			got, err := CheckHead(l.head(size), l.verifier(l.key))
			if err != nil || got != l.checkpoint(size) {
				t.Errorf("size %d: got %+v, %v", size, got, err)
			}
		}
	}
}

// A service that has lost its log still reports what it has shown, and that the log has a
// fault.
func TestCheckHeadWithAFault(t *testing.T) {
	index, hash, at := id.Index(1), id.Hash{1}, testStart
	l := newTestLog(t, 1, 3)
	for _, row := range []struct {
		name string
		size int
		bend func(h *Head)
		ok   bool
	}{
		{"nothing missing", 3, func(h *Head) { h.LatestLeafHash, h.LatestPublishedAt = &hash, &at }, true},
		{"latest unknown", 3, func(*Head) {}, true},
		{"latest unknown of one", 1, func(*Head) {}, true},
		{"empty log", 0, func(*Head) {}, true},
		{"no fault", 3, func(h *Head) { h.Fault = "" }, false},
		{"hash alone", 3, func(h *Head) { h.LatestLeafHash = &hash }, false},
		{"time alone", 3, func(h *Head) { h.LatestPublishedAt = &at }, false},
		{"no index", 3, func(h *Head) { h.LatestLogIndex = nil }, false},
		{"another index", 3, func(h *Head) { h.LatestLogIndex = &index }, false},
		{"another size", 3, func(h *Head) { h.TreeSize = 2 }, false},
		{"another hash of one", 1, func(h *Head) { h.LatestLeafHash, h.LatestPublishedAt = &hash, &at }, false},
		{"time of an empty log", 0, func(h *Head) { h.LatestPublishedAt = &at }, false},
	} {
		h := l.head(row.size)
		h.Fault, h.LatestLeafHash, h.LatestPublishedAt = "frozen", nil, nil
		row.bend(&h)
		got, err := CheckHead(h, l.verifier(l.key))
		if row.ok && (err != nil || got != l.checkpoint(row.size)) {
			t.Errorf("%s: got %+v, %v", row.name, got, err)
		}
		if !row.ok && !errors.Is(err, ErrMismatch) {
			t.Errorf("%s: got %+v, %v, want %v", row.name, got, err, ErrMismatch)
		}
	}
}

func TestHeadJSON(t *testing.T) {
	l := newTestLog(t, 1, 1)
	for size, want := range []string{
		`"organization_slug":"org-1","tree_size":0,"latest_log_index":null,"latest_leaf_hash":null,"latest_published_at":null,"root_hash":"` + tlog.EmptyRoot().String(),
		`"organization_slug":"org-1","tree_size":1,"latest_log_index":0,"latest_leaf_hash":"` + l.events[0].leaf.String() +
			`","latest_published_at":"2026-11-20T12:00:00.000Z","root_hash":"` + l.events[0].leaf.String(),
	} {
		got, err := json.Marshal(l.head(size))
		if err != nil {
			t.Fatal(err)
		}
		note, err := json.Marshal(l.note(l.key, l.checkpoint(size)))
		if err != nil {
			t.Fatal(err)
		}
		if want := `{` + want + `","origin":"` + string(l.origin) + `","checkpoint":` + string(note) + `}`; string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestCheckHeadRefuses(t *testing.T) {
	l, other := newTestLog(t, 1, 3), newTestLog(t, 2, 3)
	index, hash, at := id.Index(1), id.Hash{1}, testStart
	for _, row := range []struct {
		name string
		size int
		bend func(h *Head)
		want error
	}{
		{"tree size", 3, func(h *Head) { h.TreeSize = 2 }, ErrMismatch},
		{"root hash", 3, func(h *Head) { h.RootHash = hash }, ErrMismatch},
		{"latest index", 3, func(h *Head) { h.LatestLogIndex = &index }, ErrMismatch},
		{"no latest index", 3, func(h *Head) { h.LatestLogIndex = nil }, ErrMismatch},
		{"no latest hash", 3, func(h *Head) { h.LatestLeafHash = nil }, ErrMismatch},
		{"no latest time", 3, func(h *Head) { h.LatestPublishedAt = nil }, ErrMismatch},
		{"latest hash of a log of one", 1, func(h *Head) { h.LatestLeafHash = &hash }, ErrMismatch},
		{"latest index of an empty log", 0, func(h *Head) { h.LatestLogIndex = new(id.Index) }, ErrMismatch},
		{"latest hash of an empty log", 0, func(h *Head) { h.LatestLeafHash = &hash }, ErrMismatch},
		{"latest time of an empty log", 0, func(h *Head) { h.LatestPublishedAt = &at }, ErrMismatch},
		{"origin", 3, func(h *Head) { h.Origin = other.origin }, ErrMismatch},
		{"checkpoint of another size", 3, func(h *Head) { h.Checkpoint = l.head(2).Checkpoint }, ErrMismatch},
		{"checkpoint of another log", 3, func(h *Head) { h.Checkpoint = other.head(3).Checkpoint }, tlog.ErrSignature},
		{"head of another log", 3, func(h *Head) { *h = other.head(3) }, ErrMismatch},
		{"no checkpoint", 3, func(h *Head) { h.Checkpoint = "" }, tlog.ErrMalformed},
		{"another key signs", 3, func(h *Head) { h.Checkpoint = l.note(testKey(t, 50), l.checkpoint(3)) }, tlog.ErrSignature},
		{"extension line", 3, func(h *Head) {
			h.Checkpoint = signNote(string(l.origin), l.key, checkpointBody(l.checkpoint(3))+"extension\n")
		}, tlog.ErrMalformed},
		{"empty log with a root", 0, func(h *Head) {
			h.RootHash = hash
			h.Checkpoint = l.note(l.key, tlog.Checkpoint{Origin: l.origin, Root: hash})
		}, tlog.ErrMalformed},
	} {
		h := l.head(row.size)
		row.bend(&h)
		if got, err := CheckHead(h, l.verifier(l.key)); !errors.Is(err, row.want) || got != (tlog.Checkpoint{}) {
			t.Errorf("%s: got %+v, %v, want %v", row.name, got, err, row.want)
		}
	}
	if _, err := CheckHead(l.head(3), tlog.VerifierKey{}); !errors.Is(err, ErrMismatch) {
		t.Errorf("no key: got %v, want %v", err, ErrMismatch)
	}
}
