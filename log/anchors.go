package log

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentledger/agentledger/id"
)

// Anchors remember the newest checkpoints that were shown, apart from the
// ledgers themselves, so that a store that was rolled back is noticed. They lie
// in one folder, in production on another volume than the store, as an
// append-only journal with a checksum on each note (see journal).
//
// Notes are written together, with one sync, at most once a second and at the
// end. Only the newest size and root of each origin stay in memory. A journal with
// many more notes than origins is compacted while it is written (see upkeep).
//
// One process has a folder of anchors at a time: two would overwrite each other's
// notes, and of two that use one database nobody else on this machine would know.
type Anchors struct {
	dir      string
	readOnly bool

	lock    *os.File // nil: read-only, and there is none that can be opened
	mu      sync.Mutex
	journal *journal
	known   map[anchorKey]anchor
	round   uint32 // of compactions
	names   *journal
	owners  map[slugKey]anchorKey
	closed  bool // nothing is open any more

	waitMu sync.Mutex
	next   *anchorBatch // what is written next, nil when nobody waits

	dirtyMu sync.Mutex
	dirty   map[*ledger]struct{}
	since   time.Time // when the first of dirty was touched
	writing time.Time // since of what is being written, zero when nothing is

	lost atomic.Uint64 // how often folder or journal were found to be gone
}

type (
	anchorKey [16]byte // of SHA-256(origin)
	anchor    struct {
		size   id.Index
		root   id.Hash
		copied uint32 // the compaction that has copied its note; 0: none
	}
	keyedAnchor struct {
		key anchorKey
		anchor
	}
)

func keyOf(o id.Origin) anchorKey { return keyOfText([]byte(o)) }

func keyOfText(origin []byte) anchorKey {
	h := sha256.Sum256(origin)
	return anchorKey(h[:16])
}

// remember keeps the largest checkpoint of each origin: a ledger that was
// dropped from memory and read again may be written in either order.
func (a *Anchors) remember(key anchorKey, shown anchor) {
	if old, ok := a.known[key]; !ok || old.size <= shown.size {
		a.known[key] = shown
	}
}

// find returns the anchor of an origin.
func (a *Anchors) find(o id.Origin) (anchor, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, ok := a.known[keyOf(o)]
	return found, ok
}

// keys returns the keys of all origins that have an anchor.
func (a *Anchors) keys() map[anchorKey]struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make(map[anchorKey]struct{}, len(a.known))
	for key := range a.known {
		all[key] = struct{}{}
	}
	return all
}

// among returns the origins that have these keys, in the order of their first notes.
func (a *Anchors) among(keys map[anchorKey]struct{}) (origins []id.Origin, err error) {
	told := make(map[anchorKey]struct{}, len(keys))
	a.mu.Lock()
	defer a.mu.Unlock()
	err = a.journal.each(func(note []byte) error {
		origin, _, err := readAnchor(note)
		if err != nil {
			return err
		}
		key := keyOfText(origin)
		_, wanted := keys[key]
		if _, done := told[key]; wanted && !done {
			told[key] = struct{}{}
			origins = append(origins, id.Origin(origin))
		}
		return nil
	})
	return origins, err
}

// Size returns the size of the newest checkpoint of an origin that was shown, as far
// as the anchors know; ok is false when they know of none.
func (a *Anchors) Size(o id.Origin) (size id.Index, ok bool) {
	found, ok := a.find(o)
	return found.size, ok
}

// any reports whether there is an anchor at all.
func (a *Anchors) any() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.known) > 0
}

// bytes returns the size of the journal.
func (a *Anchors) bytes() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.journal.size
}

var (
	errReadOnlyAnchors = errors.New("the anchors are open for reading only")
	errAnchorsLost     = errors.New("the folder or its journal was removed or replaced")
)

// anchorBatch is what several callers put with one sync.
type anchorBatch struct {
	notes [][]byte
	done  chan struct{} // closed when err is set
	err   error
}

// put makes notes the anchors of their origins; they are durable at return. The
// caller has checked the notes' signatures, or made them. What callers put while
// another write is under way is written together.
func (a *Anchors) put(notes ...[]byte) error {
	b, first := a.join(notes)
	if first {
		a.mu.Lock()
		a.waitMu.Lock()
		a.next = nil
		a.waitMu.Unlock()
		b.err = a.write(b.notes)
		a.mu.Unlock()
		close(b.done)
	}
	<-b.done
	if b.err != nil {
		return fmt.Errorf("write anchors: %w", b.err)
	}
	return nil
}

// join adds notes to what is written next, and reports whether the caller writes it.
func (a *Anchors) join(notes [][]byte) (b *anchorBatch, first bool) {
	a.waitMu.Lock()
	defer a.waitMu.Unlock()
	if first = a.next == nil; first {
		a.next = &anchorBatch{done: make(chan struct{})}
	}
	a.next.notes = append(a.next.notes, notes...)
	return a.next, first
}

func (a *Anchors) write(notes [][]byte) error {
	if a.readOnly {
		return errReadOnlyAnchors
	}
	read := make([]keyedAnchor, len(notes))
	for i, n := range notes {
		var err error
		if read[i], err = readKeyed(n); err != nil {
			return err
		}
	}
	there, err := a.journal.inPlace()
	if err == nil && !there {
		err = errAnchorsLost
	}
	if err == nil {
		err = a.journal.append(notes)
	}
	if err != nil {
		return err
	}
	for _, r := range read {
		a.remember(r.key, r.anchor)
	}
	return nil
}
