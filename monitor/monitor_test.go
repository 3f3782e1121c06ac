package monitor

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// One log grows across every kind of boundary. One monitor follows it all the way, and a new one from
// each size.
func TestFollows(t *testing.T) {
	h := newHistory(t, "red")
	s := serve(t, h)
	m := follow(t, s)
	mustCheck(t, m, 0, 0)
	for _, size := range []int{1, 2, 255, 256, 257, 511, 512, 513, 1024, 3000} {
		news := size - len(h.texts)
		s.show(h.copy().grow(news, 1))
		h = s.history
		mustCheck(t, m, id.Index(size), id.Index(news))
		mustCheck(t, m, id.Index(size), 0)
		mustCheck(t, follow(t, s), id.Index(size), id.Index(size))
	}
}

// A log with full upper tiles, and one at their boundaries.
func TestFollowsLarge(t *testing.T) {
	h := newHistory(t, "red").grow(65_535, 1)
	s := serve(t, h)
	m := follow(t, s)
	mustCheck(t, m, 65_535, 65_535)
	for _, size := range []int{65_536, 65_537, 66_000} {
		news := size - len(h.texts)
		h = h.copy().grow(news, 1)
		s.show(h)
		mustCheck(t, m, id.Index(size), id.Index(news))
	}
	mustCheck(t, follow(t, s), 66_000, 66_000)
}

// Entries that were read before are not read again.
func TestReadsOnlyNewEntries(t *testing.T) {
	h := newHistory(t, "red").grow(1000, 1)
	s := serve(t, h)
	m := follow(t, s)
	mustCheck(t, m, 1000, 1000)
	s.show(h.copy().grow(100, 1))
	s.requests()
	mustCheck(t, m, 1100, 100)
	bundles := slices.DeleteFunc(s.requests(), func(path string) bool { return !strings.HasPrefix(path, "tile/entries/") })
	slices.Sort(bundles)
	if want := []string{"tile/entries/003", "tile/entries/004.p/76"}; !slices.Equal(bundles, want) {
		t.Errorf("got %q, want %q", bundles, want)
	}
}

// A mirror deletes partial tiles once full ones exist.
func TestReadsFullTilesInsteadOfDeletedPartials(t *testing.T) {
	h := newHistory(t, "red").grow(300, 1)
	s := serve(t, h.copy())
	for _, path := range []string{"tile/0/001.p/44", "tile/entries/001.p/44"} {
		full := h.copy().grow(212, 1).content(strings.TrimSuffix(path, ".p/44"))
		s.answer(path, http.NotFound)
		s.answer(strings.TrimSuffix(path, ".p/44"), func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(full) })
	}
	mustCheck(t, follow(t, s), 300, 300)
}

// found runs a check that must return a finding and leave the state unchanged, and returns the finding.
func found(t *testing.T, m *Monitor, kind Kind, what string) *Finding {
	t.Helper()
	before := stateText(t, m)
	_, err := m.Check(t.Context())
	var f *Finding
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a finding", err)
	}
	if f.Kind != kind || !strings.Contains(f.What, what) {
		t.Errorf("got %s: %s, want %s: %s", f.Kind, f.What, kind, what)
	}
	if stateText(t, m) != before {
		t.Error("the state file has changed")
	}
	if f.Folder == "" || !strings.Contains(err.Error(), f.Folder) {
		t.Errorf("the message does not name the evidence: %v", err)
	}
	return f
}

// evidence returns a file of a finding.
func evidence(t *testing.T, f *Finding, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(f.Folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// A log that was restored to an older state continues with other events.
func TestFork(t *testing.T) {
	base := newHistory(t, "red").grow(300, 1)
	first := base.copy().grow(100, 1)
	for name, second := range map[string]*history{
		"smaller than what was shown":  base.copy().grow(50, 2),
		"of the same size":             base.copy().grow(100, 2),
		"one larger":                   base.copy().grow(101, 2),
		"much larger":                  base.copy().grow(1000, 2),
		"other from the beginning":     newHistory(t, "red").grow(1500, 3),
		"other at a border of tiles":   newHistory(t, "red").grow(256, 1).grow(256, 2),
		"other behind a perfect tree":  newHistory(t, "red").grow(256, 1).grow(400, 2),
		"the last event alone differs": base.copy().grow(99, 1).grow(20, 2),
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, first)
			m := follow(t, s)
			mustCheck(t, m, 400, 400)
			s.show(second)
			kind := Fork
			if len(second.texts) < 400 {
				kind = Rollback
			}
			f := found(t, m, kind, "signed head")
			if !bytes.Equal(evidence(t, f, "known.note"), first.note(t)) || !bytes.Equal(evidence(t, f, "shown.note"), second.note(t)) {
				t.Error("the notes are not the two signed ones")
			}
			again := found(t, m, kind, "signed head")
			if folders, _ := os.ReadDir(m.Evidence); len(folders) != 1 || again.Folder != f.Folder {
				t.Errorf("stored twice: %v", folders)
			}
			if len(second.texts) > 400 {
				checkForkProof(t, f, first, second)
			}
			s.show(first) // the known history is still accepted
			mustCheck(t, m, 400, 0)
		})
	}
}

// checkForkProof checks, as a third party would, that the evidence of a fork is self-contained: both heads
// are signed, and the second contains another tree of the first one's size.
func checkForkProof(t *testing.T, f *Finding, first, second *history) {
	t.Helper()
	var proof verify.Consistency
	if err := json.Unmarshal(evidence(t, f, "proof.json"), &proof); err != nil {
		t.Fatal(err)
	}
	key := first.signer.Verifier()
	known, errKnown := tlog.OpenCheckpoint(evidence(t, f, "known.note"), key)
	shown, errShown := tlog.OpenCheckpoint(evidence(t, f, "shown.note"), key)
	if err := errors.Join(errKnown, errShown); err != nil {
		t.Fatal(err)
	}
	if err := tlog.CheckConsistency(known.Size, shown.Size, proof.FromRoot, shown.Root, proof.Hashes); err != nil || proof.FromRoot == known.Root {
		t.Errorf("the proof proves no fork: %v, roots %s and %s", err, proof.FromRoot, known.Root)
	}
}

// A smaller head counts if it persists; one node of a service may lag for a moment.
func TestSmallerHeadOnce(t *testing.T) {
	h := newHistory(t, "red").grow(10, 1)
	s := serve(t, h)
	m := follow(t, s)
	mustCheck(t, m, 10, 10)
	behind := newHistory(t, "red").grow(9, 1).note(t)
	looks := 0
	s.answer("checkpoint", func(w http.ResponseWriter, _ *http.Request) {
		if looks++; looks < 3 {
			_, _ = w.Write(behind)
			return
		}
		_, _ = w.Write(h.note(t))
	})
	mustCheck(t, m, 10, 0)
	if looks != 3 {
		t.Errorf("looked %d times", looks)
	}
}

// Every resource that a check reads is changed in the middle.
func TestTampered(t *testing.T) {
	base := newHistory(t, "red").grow(600, 1)
	flip := func(b []byte) []byte { b[len(b)/2/hashSize*hashSize+20] ^= 1; return b } // not within the length of an entry
	reorder := func(b []byte) []byte { copy(b, append(bytes.Clone(b[len(b)/2:]), b[:len(b)/2]...)); return b }
	for path, what := range map[string]string{
		"tile/entries/000":      "entry ",
		"tile/entries/001":      "entry ",
		"tile/entries/002.p/88": "entry ",
		"tile/0/000":            "its leaf hash is not the one in the tile",
		"tile/0/002.p/88":       "its leaf hash is not the one in the tile",
		"tile/1/000.p/2":        "tile/1/000.p/2 is not what the entries give",
	} {
		t.Run(path, func(t *testing.T) {
			s := serve(t, base)
			m := follow(t, s)
			s.bend(path, flip)
			f := found(t, m, Tampering, what)
			if !bytes.Equal(evidence(t, f, "shown.note"), base.note(t)) {
				t.Error("the signed head is not stored")
			}
			if strings.Contains(path, "entries") {
				if got, want := evidence(t, f, "entries"), flip(base.content(path)); !bytes.Equal(got, want) {
					t.Error("the bundle is not stored as it was served")
				}
			}
			if strings.HasPrefix(path, "tile/0") {
				s.show(base)
				s.bend(path, reorder)
				found(t, m, Tampering, what)
			}
			s.show(base)
			mustCheck(t, m, 600, 600)
		})
	}
}

// An operator who signs anything: the tree is right, the chain is not.
func TestSignedButBroken(t *testing.T) {
	entry := func(h *history, change func(*event.Entry)) []byte {
		e := event.Entry{Prev: h.last, Record: id.Hash{9}, Seq: uint64(len(h.texts)) + 1}
		change(&e)
		return e.Text()
	}
	for name, bad := range map[string]struct {
		put  func(h *history) []byte
		what string
	}{
		"number left out": {func(h *history) []byte { return entry(h, func(e *event.Entry) { e.Seq++ }) }, "its sequence number is not its place"},
		"number twice":    {func(h *history) []byte { return entry(h, func(e *event.Entry) { e.Seq-- }) }, "its sequence number is not its place"},
		"other before":    {func(h *history) []byte { return entry(h, func(e *event.Entry) { e.Prev = id.Hash{1} }) }, "it does not name the entry before it"},
		"no entry":        {func(*history) []byte { return []byte(`{"seq":1}`) }, "not in the form of an entry"},
		"space in it":     {func(h *history) []byte { return append(entry(h, func(*event.Entry) {}), ' ') }, "not in the form of an entry"},
	} {
		for _, size := range []int{0, 10, 255, 256, 300} {
			if name == "number twice" && size == 0 {
				continue // nothing precedes the first entry
			}
			h := newHistory(t, "red").grow(size, 1)
			h.put(bad.put(h))
			h.grow(20, 1)
			m := follow(t, serve(t, h))
			found(t, m, Tampering, bad.what)
		}
	}
}

// Other sources: a mirror, a witness.
func TestCompare(t *testing.T) {
	base := newHistory(t, "red").grow(300, 1)
	for name, c := range map[string]struct {
		own, other *history
		kind       Kind
	}{
		"the same":              {base, base.copy(), ""},
		"behind":                {base, newHistory(t, "red").grow(200, 1), ""},
		"empty":                 {base, newHistory(t, "red"), ""},
		"ahead":                 {base, base.copy().grow(1, 1), Rollback},
		"other of one size":     {base, newHistory(t, "red").grow(299, 1).grow(1, 2), Fork},
		"other and smaller":     {base, newHistory(t, "red").grow(199, 1).grow(1, 2), Fork},
		"other and larger":      {base, newHistory(t, "red").grow(299, 1).grow(100, 2), Rollback},
		"other at every height": {base, newHistory(t, "red").grow(128, 2), Fork},
	} {
		t.Run(name, func(t *testing.T) {
			own, other := serve(t, c.own), serve(t, c.other)
			m := follow(t, own, other)
			if c.kind == "" {
				mustCheck(t, m, 300, 300)
				return
			}
			f := found(t, m, c.kind, "signed head")
			if f.Known.From != other.url || f.Shown.From != own.url {
				t.Errorf("known from %s, shown from %s", f.Known.From, f.Shown.From)
			}
			if !bytes.Equal(evidence(t, f, "known.note"), c.other.note(t)) || !bytes.Equal(evidence(t, f, "shown.note"), c.own.note(t)) {
				t.Error("the notes are not the two signed ones")
			}
		})
	}
}

// A failure of another source is no finding and does not stop the check.
func TestCompareUnable(t *testing.T) {
	base := newHistory(t, "red").grow(300, 1)
	for name, other := range map[string]*site{"another log": serve(t, newHistory(t, "blue").grow(300, 1)), "nothing": serve(t, base)} {
		if name == "nothing" {
			other.answer("checkpoint", http.NotFound)
		}
		m := follow(t, serve(t, base), other)
		r, err := m.Check(t.Context())
		var f *Finding
		if err == nil || errors.As(err, &f) || r.TreeSize != 300 || len(r.Sources) != 1 || r.Sources[0].Error == "" {
			t.Errorf("%s: got %+v, %v", name, r, err)
		}
		if stateText(t, m) == "" {
			t.Errorf("%s: the head was verified but not stored", name)
		}
	}
}

// Two organizations: state, key and site of one are rejected for the other.
func TestOrganizationsApart(t *testing.T) {
	red, blue := serve(t, newHistory(t, "red").grow(20, 1)), serve(t, newHistory(t, "blue").grow(30, 1))
	mRed, mBlue := follow(t, red), follow(t, blue)
	mustCheck(t, mRed, 20, 20)
	mustCheck(t, mBlue, 30, 30)
	red.show(newHistory(t, "red").grow(20, 2))
	found(t, mRed, Fork, "one size")
	mustCheck(t, mBlue, 30, 0)

	swapped := follow(t, blue)
	swapped.State = mRed.State
	if _, err := swapped.Check(t.Context()); !errors.Is(err, ErrState) {
		t.Errorf("a state of another log: got %v", err)
	}
	crossed := follow(t, red)
	crossed.Log = blue.tiles()
	if _, err := crossed.Check(t.Context()); !errors.Is(err, tlog.ErrSignature) {
		t.Errorf("the site of another log: got %v", err)
	}
}
