package log

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// The names of organizations lie beside the anchors, in a journal of their own whose
// notes are two lines: the slug and the first origin of the organization that has it.
// A slug is never given to another organization. When the store is rolled back to
// before an organization was founded, its slug stays taken. A note is written before
// its organization comes to be, and counts once that has an anchor: what a founding
// that failed has left keeps nobody from the slug.
const nameJournal = "names.journal"

type slugKey [16]byte // of SHA-256(slug)

func keyOfSlug(slug []byte) slugKey {
	h := sha256.Sum256(slug)
	return slugKey(h[:16])
}

func nameNote(slug id.Slug, o id.Origin) []byte {
	first, _ := o.Split()
	return fmt.Appendf(nil, "%s\n%s\n", slug, first)
}

func readName(note []byte) (slug, origin []byte, err error) {
	slug, rest, _ := bytes.Cut(note, []byte("\n"))
	origin, rest, ok := bytes.Cut(rest, []byte("\n"))
	if !ok || len(slug) == 0 || len(origin) == 0 || len(rest) > 0 {
		return nil, nil, fmt.Errorf("read name: not two lines: %w", tlog.ErrMalformed)
	}
	return slug, origin, nil
}

// loadNames opens the journal of the names.
func (a *Anchors) loadNames(open openFunc) (err error) {
	a.owners = make(map[slugKey]anchorKey)
	a.names, err = open(a.path(nameJournal), a.rememberName)
	return err
}

func (a *Anchors) rememberName(note []byte) error {
	slug, origin, err := readName(note)
	if err == nil {
		a.owners[keyOfSlug(slug)] = keyOfText(origin)
	}
	return err
}

// nameTaken reports whether a slug is that of another organization than the one of an
// origin.
func (a *Anchors) nameTaken(slug id.Slug, o id.Origin) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	owner, founded := a.owner(slug)
	return founded && owner != keyOfFirst(o)
}

// owner returns the organization that a slug was kept for, and whether it came to be.
func (a *Anchors) owner(slug id.Slug) (owner anchorKey, founded bool) {
	owner, known := a.owners[keyOfSlug([]byte(slug))]
	_, shown := a.known[owner]
	return owner, known && shown
}

func keyOfFirst(o id.Origin) anchorKey {
	first, _ := o.Split()
	return keyOf(first)
}

// putName keeps the slug of an organization; it is durable at return. A name that is
// known is not written again, and one that is another organization's stays so.
func (a *Anchors) putName(slug id.Slug, o id.Origin) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if owner, founded := a.owner(slug); founded || owner == keyOfFirst(o) {
		return nil
	}
	if err := a.writeName(nameNote(slug, o)); err != nil {
		return fmt.Errorf("write name: %w", err)
	}
	return nil
}

func (a *Anchors) writeName(note []byte) error {
	if a.readOnly {
		return errReadOnlyAnchors
	}
	there, err := a.names.inPlace()
	if err == nil && !there {
		err = errAnchorsLost
	}
	if err == nil {
		err = a.names.append([][]byte{note})
	}
	if err != nil {
		return err
	}
	return a.rememberName(note)
}

// slugsOf returns the slugs of those of the first origins that have one.
func (a *Anchors) slugsOf(origins []id.Origin) (map[id.Origin]id.Slug, error) {
	wanted := make(map[id.Origin]bool, len(origins))
	for _, o := range origins {
		wanted[o] = true
	}
	slugs := make(map[id.Origin]id.Slug)
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.names.each(func(note []byte) error {
		slug, origin, err := readName(note)
		if err == nil && wanted[id.Origin(origin)] {
			slugs[id.Origin(origin)] = id.Slug(slug)
		}
		return err
	})
	return slugs, err
}

// SlugTaken reports whether a slug is known to be that of another organization than
// the one of an origin, also of one that the store has lost.
func (l *Ledgers) SlugTaken(slug id.Slug, o id.Origin) bool { return l.anchors.nameTaken(slug, o) }
