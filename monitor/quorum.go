package monitor

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// With a policy a head is proved when the policy's quorum of witnesses has cosigned it.
// A log that moves is always a little ahead of its witnesses. So what was verified and
// has no quorum yet may wait for MaxLag; the newest head with a quorum is the one that
// a caller can rely on meanwhile.

// ErrQuorum: what a log shows has been without its quorum for longer than MaxLag. It
// proves nothing wrong: witnesses may be away, or the log keeps cosignatures back.
var ErrQuorum = errors.New("no quorum of the policy's witnesses")

const (
	defaultQuorumLag = 10 * time.Minute
	maxWaiting       = 64 // sightings that are kept; those beyond are not, so a lag may be told too short then
)

// QuorumReport is how far the policy's quorum has followed a log.
type QuorumReport struct {
	TreeSize id.Index `json:"tree_size"` // of the newest head that has the quorum; 0: of none
	RootHash id.Hash  `json:"root_hash"`
	// Waiting is the number of verified entries that are in no head with the quorum, and
	// WaitingSince is when the first of them was seen here; nil when there is none.
	Waiting      id.Index    `json:"waiting_entries"`
	WaitingSince *id.Instant `json:"waiting_since"`
}

// sighting is a head without a quorum, and when it was verified first.
type sighting struct {
	Size id.Index   `json:"tree_size"`
	At   id.Instant `json:"at"`
}

// checkQuorum notes in s the newest of the heads that has the quorum, all of which were found
// to be of one history, and how long the rest has waited. unread is why no cosigned
// checkpoint could be read; nil when it could. The error wraps ErrQuorum.
func (m *Monitor) checkQuorum(s *state, r *Report, heads []signedHead, unread error) error {
	if m.Policy == nil {
		return nil
	}
	s.proven = m.newestProven(append(slices.Clone(heads), s.proven))
	s.noteSighting(r.CheckedAt)
	q := &QuorumReport{TreeSize: s.proven.Size, RootHash: s.proven.Root, Waiting: s.head.Size - s.proven.Size}
	if r.Quorum = q; q.TreeSize == 0 {
		q.RootHash = tlog.EmptyRoot()
	}
	if len(s.waiting) == 0 {
		return nil
	}
	since := s.waiting[0].At
	if q.WaitingSince = &since; r.CheckedAt.Time().Sub(since.Time()) <= m.MaxLag {
		return nil
	}
	err := fmt.Errorf("%s: %w: %d of %d entries have it, the others wait since %s", m.origin, ErrQuorum, q.TreeSize, s.head.Size, since)
	if unread != nil {
		err = fmt.Errorf("%w: %w", err, unread)
	}
	return err
}

// noteSighting notes that the head was verified, if it has no quorum yet, and forgets what has
// one by now.
func (s *state) noteSighting(now id.Instant) {
	s.waiting = slices.DeleteFunc(s.waiting, func(w sighting) bool { return w.Size <= s.proven.Size })
	n := len(s.waiting)
	if s.head.Size > s.proven.Size && n < maxWaiting && (n == 0 || s.waiting[n-1].Size < s.head.Size) {
		s.waiting = append(s.waiting, sighting{s.head.Size, now})
	}
}

// newestProven returns the largest head that has the quorum, with the cosignatures of
// all notes of its tree; one without a note when none has it.
func (m *Monitor) newestProven(heads []signedHead) (newest signedHead) {
	for _, h := range heads {
		if h.note == nil || newest.note != nil && h.Size <= newest.Size {
			continue
		}
		if merged, reached := m.hasQuorum(h, heads); reached {
			newest = merged
		}
	}
	return newest
}

// hasQuorum reports whether a head has the quorum, by its own note and those of others
// of the same tree, and returns it with one note of all of these cosignatures.
func (m *Monitor) hasQuorum(h signedHead, others []signedHead) (signedHead, bool) {
	note, err := tlog.ParseNote(h.note)
	if err != nil {
		return h, false // not of a head: it was opened
	}
	for _, other := range others {
		if other.Checkpoint != h.Checkpoint || other.note == nil {
			continue
		}
		if more, err := tlog.ParseNote(other.note); err == nil {
			note = m.withCosignatures(note, more)
		}
	}
	h.note = note.Bytes()
	return h, m.Policy.Reached(m.Policy.Cosignatures(note))
}

// withCosignatures adds lines of another note of the same text that are cosignatures of
// the policy's witnesses and that the note lacks.
func (m *Monitor) withCosignatures(note, other tlog.Note) tlog.Note {
	for _, w := range m.Policy.Witnesses {
		if _, err := w.Key.Cosigned(note); err == nil {
			continue
		}
		if _, err := w.Key.Cosigned(other); err != nil {
			continue
		}
		at := slices.IndexFunc(other.Signatures, w.Key.Made)
		if more, err := note.Add(other.Signatures[at]); err == nil { // a wrong line of the key takes its place
			note = more
		}
	}
	return note
}
