package verify

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// rotatedLog is a log whose event i states key i + 1, in a tree that key i signs too. Key 0 is the first one.
type rotatedLog struct {
	*testLog
	fetched []tlog.KeyHash
}

func newRotatedLog(t *testing.T, rotations int) *rotatedLog {
	l := &rotatedLog{testLog: newTestLog(t, 1, 0)}
	for i := range rotations {
		l.add(forgery{
			unsigned: func(e map[string]any) {
				e["action_kind"] = LogKeyKind
				e["payload"] = map[string]any{"transition": "log_key_created", "vkey": l.vkey(i + 1).String()}
			},
			record: func(r *event.Record) {
				r.Signer, r.Custody, r.IngestKeyID = event.SignerSystem, event.CustodyServer, ""
			},
		})
	}
	return l
}

func (l *rotatedLog) vkey(i int) tlog.VerifierKey { return l.verifier(testKey(l.t, byte(50+i))) }

// signed returns the checkpoint of the first size events, signed by these keys.
func (l *rotatedLog) signed(size int, keys ...int) string {
	text := ""
	for _, i := range keys {
		note := l.note(testKey(l.t, byte(50+i)), l.checkpoint(size))
		if text == "" {
			text = note
			continue
		}
		_, line, _ := strings.Cut(note, "\n\n")
		text += line
	}
	return text
}

// statement returns the bundle of the event that states key i.
func (l *rotatedLog) statement(i int) *Bundle {
	b := l.bundle(i-1, i, id.DiscloseFull)
	envelope := string(l.events[i-1].envelope)
	b.Envelope, b.Disclosure = &envelope, id.DiscloseFull
	b.Checkpoint, b.LogKey = l.signed(i, i-1, i), l.vkey(i-1).String()
	b.LogKeys = []string{l.vkey(i - 1).String(), l.vkey(i).String()}
	return b
}

// fetch returns statements to FindKeyStatements.
func (l *rotatedLog) fetch(key tlog.KeyHash) (*Bundle, error) {
	l.fetched = append(l.fetched, key)
	for i := range l.events {
		if l.vkey(i+1).Hash() == key {
			return l.statement(i + 1), nil
		}
	}
	return nil, errors.New("404")
}

// Rotations are followed one after another, in any order of the lines of the note.
func TestFindKeyStatements(t *testing.T) {
	l := newRotatedLog(t, 3)
	first := []LogKey{Always(l.vkey(0))}
	for name, c := range map[string]struct {
		note  string
		found []int
	}{
		"nothing new":                   {l.signed(3, 0), nil},
		"one rotation":                  {l.signed(3, 1), []int{1}},
		"three rotations":               {l.signed(3, 3), []int{1, 2, 3}},
		"two keys sign":                 {l.signed(3, 0, 1), []int{1}},
		"two unknown keys sign":         {l.signed(3, 2, 3), []int{1, 2, 3}},
		"two unknown keys, newer first": {l.signed(3, 3, 2), []int{1, 2, 3}},
	} {
		l.fetched = nil
		found, err := FindKeyStatements([]byte(c.note), first, l.fetch)
		known, numbers := first, []int(nil)
		for _, s := range found {
			i := int(s.From)
			if numbers = append(numbers, i); s.Key != l.vkey(i).String() || s.By != l.vkey(i-1).String() || s.Checkpoint != l.checkpoint(i) {
				t.Errorf("%s: got %+v", name, s)
			}
			if known, err = s.AddTo(known); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil || !slices.Equal(numbers, c.found) || len(l.fetched) != len(c.found) {
			t.Errorf("%s: got %v, %v after fetching %d statements", name, numbers, err, len(l.fetched))
		}
		for i, k := range known {
			to := id.Index(i + 1)
			if i == len(known)-1 {
				to = tlog.MaxSize + 1
			}
			if k != (LogKey{Key: l.vkey(i), From: id.Index(i), To: to}) {
				t.Errorf("%s: key %d signs [%d, %d)", name, i, k.From, k.To)
			}
		}
	}
}

// A replaced key cannot state another one, whatever tree it signs.
func TestReplacedKeyCannotStateAKey(t *testing.T) {
	l := newRotatedLog(t, 2)
	known, err := AcceptedKey{Key: l.vkey(7).String(), By: l.vkey(0).String(), From: 9}.AddTo([]LogKey{Always(l.vkey(0))})
	if err != nil {
		t.Fatal(err)
	}
	for i, tc := range []struct {
		note string
		err  error
	}{{l.signed(2, 1), tlog.ErrSignature}, {l.signed(2, 2), tlog.ErrSignature}} {
		found, err := FindKeyStatements([]byte(tc.note), known, l.fetch)
		if len(found) != 0 || !errors.Is(err, tc.err) {
			t.Errorf("%d: got %v, %v", i, found, err)
		}
	}
}

// The number of fetched statements is bounded, and a statement counts only for the key it was fetched for.
func TestFindKeyStatementsBounds(t *testing.T) {
	l := newRotatedLog(t, MaxKeyStatements+1)
	first := []LogKey{Always(l.vkey(0))}
	if found, err := FindKeyStatements([]byte(l.signed(MaxKeyStatements+1, MaxKeyStatements+1)), first, l.fetch); len(found) != 0 || err == nil {
		t.Errorf("got %d statements, %v", len(found), err)
	}
	if len(l.fetched) != MaxKeyStatements {
		t.Errorf("fetched %d statements", len(l.fetched))
	}
	found, err := FindKeyStatements([]byte(l.signed(MaxKeyStatements, MaxKeyStatements)), first, l.fetch)
	if len(found) != MaxKeyStatements || err != nil {
		t.Errorf("got %d statements, %v", len(found), err)
	}
	l.fetched = nil
	var lines []int
	for i := range 40 {
		lines = append(lines, 100+i)
	}
	if found, err := FindKeyStatements([]byte(l.signed(1, lines...)), first, l.fetch); len(found) != 0 || err == nil || len(l.fetched) != MaxKeyStatements {
		t.Errorf("40 unknown lines: got %d statements, %v after fetching %d statements", len(found), err, len(l.fetched))
	}
	other := func(tlog.KeyHash) (*Bundle, error) { return l.statement(1), nil }
	if found, err := FindKeyStatements([]byte(l.signed(3, 2)), first, other); len(found) != 0 || !errors.Is(err, ErrMismatch) {
		t.Errorf("the statement of another key: got %v, %v", found, err)
	}
	loop := func(tlog.KeyHash) (*Bundle, error) { return l.statement(3), nil }
	if found, err := FindKeyStatements([]byte(l.signed(3, 3)), first, loop); len(found) != 0 || err == nil {
		t.Errorf("a statement signed by an unknown key: got %v, %v", found, err)
	}
	if found, err := FindKeyStatements([]byte("x"), first, l.fetch); len(found) != 0 || err == nil {
		t.Errorf("not a note: got %v, %v", found, err)
	}
}

// A stored key counts if the key that vouched for it is known, and only in the form in which readers store it.
func TestAcceptedKey(t *testing.T) {
	l := newRotatedLog(t, 1)
	other := newTestLog(t, 2, 0)
	good := AcceptedKey{Key: l.vkey(1).String(), By: l.vkey(0).String(), From: 5}
	known, err := good.AddTo([]LogKey{Always(l.vkey(3))})
	if err != nil || len(known) != 1 || known[0] != Always(l.vkey(3)) {
		t.Errorf("by an unknown key: got %v, %v", known, err)
	}
	given := []LogKey{Always(l.vkey(0)), Always(l.vkey(1))}
	known, err = good.AddTo(given)
	if err != nil || len(known) != 2 || known[0].To != 5 || known[1] != Always(l.vkey(1)) || given[0].To != tlog.MaxSize+1 {
		t.Errorf("both given: got %v, %v", known, err)
	}
	want := fmt.Sprintf("the key %s replaces %s from size 5 on", Signer(l.vkey(1).Name(), l.vkey(1).Hash()), Signer(l.vkey(0).Name(), l.vkey(0).Hash()))
	if !strings.HasPrefix(good.String(), want) {
		t.Errorf("got %q", good)
	}
	for name, bad := range map[string]AcceptedKey{
		"no key":         {Key: "x", By: good.By, From: 5},
		"of another log": {Key: other.verifier(other.key).String(), By: good.By, From: 5},
		"itself":         {Key: good.By, By: good.By, From: 5},
		"from 0":         {Key: good.Key, By: good.By},
		"too large":      {Key: good.Key, By: good.By, From: tlog.MaxSize + 1},
	} {
		if _, err := bad.AddTo(given); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A reader that remembers MaxKnownKeys keys of a log refuses the next rotation, and the error names the bound.
func TestTooManyKeys(t *testing.T) {
	l := newRotatedLog(t, 1)
	for _, tc := range []struct {
		known int
		want  error
	}{{MaxKnownKeys - 1, nil}, {MaxKnownKeys, ErrTooManyKeys}} {
		known := append(slices.Repeat([]LogKey{{Key: l.vkey(9), To: 1}}, tc.known-1), Always(l.vkey(0)))
		found, err := FindKeyStatements([]byte(l.signed(1, 1)), known, l.fetch)
		if !errors.Is(err, tc.want) || (len(found) == 1) != (tc.want == nil) {
			t.Errorf("%d known keys: got %d statements, %v, want %v", tc.known, len(found), err, tc.want)
		}
		if err != nil && !strings.Contains(err.Error(), "at most 256 keys") {
			t.Errorf("%d known keys: error %q does not name the bound", tc.known, err)
		}
	}
	known := append(slices.Repeat([]LogKey{{Key: l.vkey(9), To: 1}}, MaxKnownKeys-2), Always(l.vkey(0)), Always(l.vkey(1)))
	if _, err := (AcceptedKey{Key: l.vkey(1).String(), By: l.vkey(0).String(), From: 5}).AddTo(known); err != nil {
		t.Errorf("a key that is known already: got %v", err)
	}
}
