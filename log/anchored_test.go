package log_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// What a file system took and may never have written is not shown: the next start may
// find it gone, and what was shown of it would be a fork.
func TestAnchoredShowsNothingBeyondTheAnchor(t *testing.T) {
	for name, early := range map[string]int{"nothing anchored": 0, "some": 3, "a tile and more": 300} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, storagetest.NewModel())
			w.burst(early, "early")
			w.mustAppend(blue, "last")
			w.reopen(w.store)
			want := map[id.Tenant]any{red: w.checkpoint(red), blue: w.checkpoint(blue)}
			behind := copyAnchors(t, w.anchors)
			w.mustAppend(red, "late-1", "late-2")
			if err := w.ledgers.Close(); err != nil {
				t.Fatal(err)
			}
			w.anchors = behind

			w.open(log.Options{ReadOnly: true, Anchored: true})
			for tenant, c := range want {
				if got := w.checkpoint(tenant); got != c {
					t.Errorf("tenant %d: got %+v, want %+v", tenant, got, c)
				}
			}
			s := w.state(red)
			if int(s.Size()) != early {
				t.Fatalf("got size %d, want %d", s.Size(), early)
			}
			if _, err := w.ledgers.Find(t.Context(), s, "late-1"); !fault.Is(err, fault.NotFound) {
				t.Errorf("an event beyond the anchor: got %v, want NotFound", err)
			}
			for at := range s.Size() {
				if _, root, _, err := w.ledgers.Inclusion(t.Context(), s, at, s.Size()); err != nil || root != s.Root() {
					t.Fatalf("inclusion of %d: got root %v, %v; want %v", at, root, err, s.Root())
				}
			}
			if err := s.Trusted(); err != nil {
				t.Errorf("trusted: got %v", err)
			}
			if err := w.ledgers.Close(); err != nil {
				t.Fatal(err)
			}

			w.open(log.Options{}) // it was there after all
			if got := w.state(red); int(got.Size()) != early+2 || got.Trusted() != nil {
				t.Errorf("afterwards: got size %d, %v; want %d", got.Size(), got.Trusted(), early+2)
			}
		})
	}
}

// copyAnchors returns a folder with the anchors as they are on disk.
func copyAnchors(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(filepath.Join(to, "anchors"), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(to, "anchors")
}
