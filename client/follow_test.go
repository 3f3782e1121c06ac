package client

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// A reader that stores its memory as JSON detects another history, a rollback and another key. The table in
// internal/test/readers covers the rotations.
func TestFollow(t *testing.T) {
	s := filled(t, 4)
	mine, other := s.Organization(0), s.Organization(1)
	c, _ := dial(t, s, mine)
	first, err := c.Log(mine.Slug, mine.LogKey()).Follow(t.Context(), Memory{})
	if err != nil || first.Checkpoint.Size != 4 || len(first.NewKeys) != 0 {
		t.Fatalf("got %+v, %v", first, err)
	}
	stored, err := json.Marshal(first.Memory)
	if err != nil {
		t.Fatal(err)
	}
	var memory Memory
	if err := json.Unmarshal(stored, &memory); err != nil || memory.Checkpoint != first.Memory.Checkpoint {
		t.Fatalf("got %s, %v", stored, err)
	}
	if _, err := c.Send(t.Context(), envelope(t, mine, Event{})); err != nil {
		t.Fatal(err)
	}
	second, err := c.Log(mine.Slug, mine.LogKey()).Follow(t.Context(), memory)
	if err != nil || second.Checkpoint.Size != 5 {
		t.Fatalf("got %+v, %v", second, err)
	}
	// visit returns the memory of a visit to another service whose log has the same key.
	visit := func(size int) Memory {
		again := filled(t, size)
		c, _ := dial(t, again, again.Organization(0))
		f, err := c.Log(mine.Slug, mine.LogKey()).Follow(t.Context(), Memory{})
		if err != nil {
			t.Fatal(err)
		}
		return f.Memory
	}
	accepted := func(key, by string) Memory {
		return Memory{Checkpoint: memory.Checkpoint, Keys: []verify.AcceptedKey{{Key: key, By: by, From: 9}}}
	}
	for name, bad := range map[string]struct {
		memory Memory
		want   error
	}{
		"another tree of this size":      {visit(5), verify.ErrMismatch},
		"another history":                {visit(3), verify.ErrMismatch},
		"a smaller head":                 {visit(8), verify.ErrMismatch},
		"a malformed checkpoint":         {Memory{Checkpoint: "x"}, tlog.ErrMalformed},
		"a malformed key":                {accepted("x", mine.LogKey().String()), verify.ErrMalformed},
		"an accepted key of another log": {accepted(other.LogKey().String(), mine.LogKey().String()), verify.ErrMalformed},
	} {
		if _, err := c.Log(mine.Slug, mine.LogKey()).Follow(t.Context(), bad.memory); !errors.Is(err, bad.want) {
			t.Errorf("%s: got %v, want %v", name, err, bad.want)
		}
	}
	if _, err := c.Log(mine.Slug, other.LogKey()).Follow(t.Context(), Memory{}); !errors.Is(err, tlog.ErrSignature) && !errors.Is(err, verify.ErrMismatch) {
		t.Errorf("another log's key: got %v", err)
	}
	if _, err := c.Log("nobody", mine.LogKey()).Follow(t.Context(), Memory{}); !isNotFound(err) {
		t.Errorf("no log: got %v", err)
	}
}
