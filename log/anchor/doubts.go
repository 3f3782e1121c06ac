package anchor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/tlog"
)

// doubts describe what damaged journals may have lost. The zero value means that nothing is lost.
type doubts struct {
	// all is set if it is unknown whose notes some damaged bytes contained. Then every origin is doubtful, except the
	// settled ones.
	all      bool
	settled  map[originHash]struct{}
	affected map[originHash]int64 // origins that lost a note, and the offset of the damaged bytes
	slugs    bool                 // slugs may be lost
}

// findDoubts compares the damage of the journals with the remaining notes. It is called once, after both are loaded.
func (f *Folder) findDoubts() error {
	if len(f.heads) == 0 {
		f.slugs.missing = false // there is no organization yet
	}
	if f.slugs.missing && !f.readOnly {
		if err := f.slugs.noteMissing(); err != nil {
			return err
		}
	}
	f.doubts.slugs = f.slugs.missing || len(f.slugs.damages) > 0
	if len(f.journal.damages) == 0 {
		return nil
	}
	unknownEnd := int64(0)
	f.doubts.settled, f.doubts.affected = make(map[originHash]struct{}), make(map[originHash]int64)
	for _, d := range f.journal.damages {
		if origin, known := f.identify(d); known {
			f.doubts.affected[origin] = d.at
		} else {
			f.doubts.all, unknownEnd = true, d.end()
		}
	}
	_, err := scanNotes(f.journal.file, 0, f.journal.size, scan{note: func(note []byte, at int64, _ int) error {
		h, err := parseOriginHead(note)
		if err != nil || h.size < f.heads[h.origin].size {
			return nil
		}
		if at >= unknownEnd {
			f.doubts.settled[h.origin] = struct{}{}
		}
		if lost, is := f.doubts.affected[h.origin]; is && at > lost {
			delete(f.doubts.affected, h.origin)
		}
		return nil
	}})
	return err
}

// identify returns the origin whose note was in damaged bytes. It reports false unless the bytes are one note, of an
// origin that other notes name too: the damage may be in the origin itself.
func (f *Folder) identify(d damage) (originHash, bool) {
	if d.bytes > int64(maxFrameLine+maxNoteBytes) {
		return originHash{}, false
	}
	region := make([]byte, d.bytes)
	if _, err := f.journal.file.ReadAt(region, d.at); err != nil && !errors.Is(err, io.EOF) {
		return originHash{}, false
	}
	line, note, _ := bytes.Cut(region, []byte("\n"))
	length, _, ok := parseFrameLine(append(line, '\n'))
	if !ok || length != len(note) { // the damage is in the first line, so the note must be whole
		n, err := tlog.ParseNote(note)
		if err == nil {
			_, err = n.ReadCheckpoint()
		}
		if err != nil {
			return originHash{}, false
		}
	}
	origin, _, _ := bytes.Cut(note, []byte("\n"))
	hash := hashOriginText(origin)
	if _, known := f.heads[hash]; known {
		return hash, true
	}
	for _, owner := range f.slugOwners {
		if owner == hash {
			return hash, true
		}
	}
	return originHash{}, false
}

func (d *doubts) settle(o originHash) {
	if d.all {
		d.settled[o] = struct{}{}
	}
	delete(d.affected, o)
}

// Doubtful reports whether the latest anchor of an origin may have been in damaged bytes of the journal. Its ledger must
// not accept events until an operator or a quorum of witnesses has confirmed its head. Putting that head ends the doubt.
func (f *Folder) Doubtful(o id.Origin) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	hash := hashOrigin(o)
	_, affected := f.doubts.affected[hash]
	_, settled := f.doubts.settled[hash]
	return affected || f.doubts.all && !settled
}

// MarkNew records that an origin was just created, so that the journal can't have lost a note of it.
func (f *Folder) MarkNew(o id.Origin) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.doubts.settle(hashOrigin(o))
}

// SlugsDoubtful reports whether slugs may be lost, so that a slug that seems free may belong to an organization.
func (f *Folder) SlugsDoubtful() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.doubts.slugs
}

// SettleSlugs records that the journal contains the slugs of all organizations again.
func (f *Folder) SettleSlugs() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.doubts.slugs = false
}

// Problems describes the damage of the journals: for each, the file and what to do about it.
func (f *Folder) Problems() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	held := "no ledger is affected, because each one has a newer anchor"
	switch {
	case f.doubts.all:
		held = "it is not known whose anchors they contained, so every ledger without a newer anchor is read-only: adopt the " +
			"latest checkpoint that was shown of each (agentledger adopt --checkpoint FILE), or all stored heads " +
			"(agentledger adopt --all-heads --reason TEXT)"
	case len(f.doubts.affected) > 0:
		held = fmt.Sprintf("%s read-only: adopt the latest checkpoint that was shown of each (agentledger adopt --checkpoint FILE), "+
			"or the stored heads (agentledger adopt --all-heads --reason TEXT)", textcheck.Count(len(f.doubts.affected),
			"ledger that lost its latest anchor is", "ledgers that lost their latest anchor are"))
	}
	for _, d := range f.journal.damages {
		all = append(all, fmt.Sprintf("%s is damaged: %s at byte %d; %s", f.journal.path, textcheck.Count(d.bytes, "byte"), d.at, held))
	}
	for _, d := range f.slugs.damages {
		if d.bytes != missingBytes || !f.slugs.missing {
			all = append(all, fmt.Sprintf("%s is damaged: %s at byte %d; %s", f.slugs.path, textcheck.Count(d.bytes, "byte"), d.at, lostNames))
		}
	}
	return all
}

const lostNames = "the names of the organizations in the store are written again; until that is done, and as long as the store " +
	"lacks a ledger whose name is lost, no organization can be founded (agentledger adopt --all-heads --reason TEXT ends that)"

// MissingNames returns a description of the problem if the journal of slugs was missing although there are anchors, or
// "".
func (f *Folder) MissingNames() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.slugs.missing || !f.doubts.slugs {
		return ""
	}
	return fmt.Sprintf("%s is missing; %s", f.slugs.path, lostNames)
}

// A journal of slugs that replaces a missing one begins with this line and the date. The line is not a note, so it
// counts as damage: the loss is still known after a restart.
const (
	missingText  = "this journal was missing on "
	missingBytes = int64(len(missingText + time.DateOnly + "\n"))
)

func (j *journal) noteMissing() error {
	if j.size > 0 { // an earlier start wrote the line
		return nil
	}
	text := []byte(missingText + time.Now().UTC().Format(time.DateOnly) + "\n")
	if _, err := j.file.WriteAt(text, 0); err != nil {
		return err
	}
	j.size, j.damages = missingBytes, []damage{{at: 0, bytes: missingBytes}}
	return j.file.Sync()
}

// wasMissing reports whether the journal begins with the line that noteMissing writes.
func (j *journal) wasMissing() bool {
	text := make([]byte, len(missingText))
	_, err := j.file.ReadAt(text, 0)
	return err == nil && string(text) == missingText
}

// mayHideNotes reports whether damaged bytes may have contained the latest note of an origin that is still doubtful.
func (f *Folder) mayHideNotes(d damage) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if origin, known := f.identify(d); known {
		_, affected := f.doubts.affected[origin]
		return affected
	}
	return f.doubts.all
}

// dropSettledDamage removes damaged bytes that no longer matter from the journals.
func (f *Folder) dropSettledDamage(ctx context.Context) error {
	f.mu.Lock()
	heads := len(f.journal.damages) > 0 && !f.doubts.all && len(f.doubts.affected) == 0
	slugs := len(f.slugs.damages) > 0 && !f.doubts.slugs
	f.mu.Unlock()
	if heads {
		if err := f.Compact(ctx, nil); err != nil {
			return err
		}
	}
	if slugs {
		return f.slugs.rewriteNotes(ctx, &f.mu, rewriting{retain: func(damage) bool { return false }})
	}
	return nil
}

// ForgetDamage removes the damaged bytes from the journals, after an operator has decided on every ledger that they may
// concern. Copies of the damaged files remain next to the journals. It must not be called while Run is running.
func (f *Folder) ForgetDamage(ctx context.Context) error {
	f.mu.Lock()
	f.doubts = doubts{}
	journals := []*journal{f.journal, f.slugs}
	f.mu.Unlock()
	for _, j := range journals {
		if len(j.damages) == 0 {
			continue
		}
		err := os.Link(j.path, j.path+".damaged-"+time.Now().UTC().Format("20060102T150405.000Z"))
		if err == nil {
			err = j.rewriteNotes(ctx, &f.mu, rewriting{retain: func(damage) bool { return false }})
		}
		if err != nil {
			return fmt.Errorf("remove damaged bytes: %w", err)
		}
	}
	return nil
}
