package monitor

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/tlog"
)

// With a policy, a head is proved if the policy's quorum of witnesses has cosigned it. A growing
// log is always a little ahead of its witnesses, so a verified head without a quorum may wait for
// MaxLag. Until then callers can rely on the latest head with a quorum.

// ErrQuorum is wrapped if entries have waited for their quorum longer than MaxLag. It is no proof
// of misbehaviour: witnesses may be down, or the log may withhold cosignatures.
var ErrQuorum = errors.New("no quorum of the policy's witnesses")

const (
	defaultQuorumLag = 10 * time.Minute
	maxWaiting       = 64 // maximum number of stored sightings; beyond it, the reported lag may be too short
)

// QuorumReport is how far the policy's quorum has followed a log.
type QuorumReport struct {
	TreeSize id.Index `json:"tree_size"` // of the latest head with the quorum; 0 if there is none
	RootHash id.Hash  `json:"root_hash"`
	// Waiting is the number of verified entries that no head with the quorum covers. WaitingSince
	// is when the first such entry was seen; nil if none waits.
	Waiting      id.Index    `json:"waiting_entries"`
	WaitingSince *id.Instant `json:"waiting_since"`
}

// sighting is a head without a quorum and the time of its first verification.
type sighting struct {
	Size id.Index   `json:"tree_size"`
	At   id.Instant `json:"at"`
}

// checkQuorum records in s the latest head with the quorum, and reports how long the other entries
// have waited. All heads must be of one history. unread is the error of fetching the cosigned
// checkpoint; it may be nil. The error wraps ErrQuorum.
func (m *Monitor) checkQuorum(s *state, r *Report, heads []signedHead, unread error) error {
	if m.Policy == nil {
		return nil
	}
	s.proven = m.newestProven(append(slices.Clone(heads), s.proven))
	s.noteSighting(r.CheckedAt)
	if !m.Policy.AsksForWitnesses() {
		return nil
	}
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
	err := fmt.Errorf("%s: %w: %d of %s it, the others wait since %s", m.origin, ErrQuorum, q.TreeSize,
		textcheck.Count(s.head.Size, "entry has", "entries have"), since)
	if unread != nil {
		err = fmt.Errorf("%w: %w", err, unread)
	}
	return err
}

// noteSighting records a verified head without a quorum, and removes sightings that have one by
// now.
func (s *state) noteSighting(now id.Instant) {
	s.waiting = slices.DeleteFunc(s.waiting, func(w sighting) bool { return w.Size <= s.proven.Size })
	n := len(s.waiting)
	if s.head.Size > s.proven.Size && n < maxWaiting && (n == 0 || s.waiting[n-1].Size < s.head.Size) {
		s.waiting = append(s.waiting, sighting{s.head.Size, now})
	}
}

// newestProven returns the largest head with the quorum, with the cosignatures of all notes of its
// tree. The result has no note if no head has the quorum.
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

// hasQuorum reports whether a head has the quorum, counting the notes of all heads of the same
// tree. The returned head has one note with all of these cosignatures.
func (m *Monitor) hasQuorum(h signedHead, others []signedHead) (signedHead, bool) {
	note, err := tlog.ParseNote(h.note)
	if err != nil {
		return h, false // cannot happen: the head's note was parsed before
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

// withCosignatures adds the missing cosignatures of the policy's witnesses from another
// note of the same text.
func (m *Monitor) withCosignatures(note, other tlog.Note) tlog.Note {
	for _, w := range m.Policy.Witnesses {
		if _, err := w.Key.Cosigned(note); err == nil {
			continue
		}
		if _, err := w.Key.Cosigned(other); err != nil {
			continue
		}
		at := slices.IndexFunc(other.Signatures, w.Key.Matches)
		// Add fails if the note already has an invalid line of the key.
		if more, err := note.Add(other.Signatures[at]); err == nil {
			note = more
		}
	}
	return note
}
