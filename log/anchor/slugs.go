package anchor

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// slugJournal contains notes of two lines: a slug, and the first origin of its organization. A note is written before
// the organization is created. It counts once the organization has an anchor, so that a failed creation does not block
// the slug.
const slugJournal = "names.journal"

type slugHash [16]byte // first bytes of SHA-256(slug)

func hashSlug(slug []byte) slugHash {
	h := sha256.Sum256(slug)
	return slugHash(h[:16])
}

func formatSlugNote(slug id.Slug, o id.Origin) []byte {
	first, _ := o.Split()
	return fmt.Appendf(nil, "%s\n%s\n", slug, first)
}

func parseSlugNote(note []byte) (slug, origin []byte, err error) {
	slug, rest, _ := bytes.Cut(note, []byte("\n"))
	origin, rest, ok := bytes.Cut(rest, []byte("\n"))
	if !ok || len(slug) == 0 || len(origin) == 0 || len(rest) > 0 {
		return nil, nil, fmt.Errorf("read slug: not two lines: %w", tlog.ErrMalformed)
	}
	return slug, origin, nil
}

// loadSlugs opens the journal of slugs.
func (f *Folder) loadSlugs(open journalOpener) (err error) {
	f.slugOwners = make(map[slugHash]originHash)
	f.slugs, err = open(f.journalPath(slugJournal), f.rememberSlug)
	return err
}

func (f *Folder) rememberSlug(note []byte) error {
	slug, origin, err := parseSlugNote(note)
	if err == nil {
		f.slugOwners[hashSlug(slug)] = hashOriginText(origin)
	}
	return err
}

// SlugTaken reports whether a slug belongs to another organization than that of an origin, which the store may have
// lost.
func (f *Folder) SlugTaken(slug id.Slug, o id.Origin) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	owner, founded := f.findSlugOwner(slug)
	return founded && owner != hashFirstOrigin(o)
}

// findSlugOwner returns the organization that a slug is stored for, and whether that organization was created.
func (f *Folder) findSlugOwner(slug id.Slug) (owner originHash, founded bool) {
	owner, known := f.slugOwners[hashSlug([]byte(slug))]
	_, shown := f.heads[owner]
	return owner, known && shown
}

func hashFirstOrigin(o id.Origin) originHash {
	first, _ := o.Split()
	return hashOrigin(first)
}

// KeepSlug durably stores the slug of the organization of an origin. It does nothing if the slug is stored already or
// belongs to another organization.
func (f *Folder) KeepSlug(slug id.Slug, o id.Origin) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isSlugKept(slug, hashFirstOrigin(o)) {
		return nil
	}
	note := formatSlugNote(slug, o)
	if err := f.writeSlugNote(note); err != nil {
		return fmt.Errorf("write slug: %w", err)
	}
	for _, w := range f.followers {
		w.addSlug(hashSlug([]byte(slug)), note)
	}
	return nil
}

// isSlugKept reports whether a slug is stored for an origin already, or belongs to another organization that was
// created.
func (f *Folder) isSlugKept(slug id.Slug, origin originHash) bool {
	owner, founded := f.findSlugOwner(slug)
	return founded || owner == origin
}

func (f *Folder) writeSlugNote(note []byte) error {
	if f.readOnly {
		return errReadOnly
	}
	if err := appendInPlace(f.slugs, [][]byte{note}); err != nil {
		return err
	}
	return f.rememberSlug(note)
}

// listSlugs returns the slugs of the origins that have one.
func (f *Folder) listSlugs(origins []id.Origin) (map[id.Origin]id.Slug, error) {
	selected := make(map[id.Origin]bool, len(origins))
	for _, o := range origins {
		selected[o] = true
	}
	slugs := make(map[id.Origin]id.Slug)
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.slugs.readAllNotes(func(note []byte) error {
		slug, origin, err := parseSlugNote(note)
		if err == nil && selected[id.Origin(origin)] {
			slugs[id.Origin(origin)] = id.Slug(slug)
		}
		return nil // malformed notes are damage
	})
	return slugs, err
}
