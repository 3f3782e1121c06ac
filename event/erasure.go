package event

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
)

const (
	// KindErasure is the action_kind of the server's event that erases envelopes.
	KindErasure = "ledger_envelope_erased"
	// MaxErasedRanges is the maximum number of ranges in such an event, about 20 KiB of its
	// payload.
	MaxErasedRanges = 1024
	// MaxErasedEvents is the maximum number of indices in the ranges of such an event.
	MaxErasedEvents = 4096
)

// Erasure is the statement of an event of KindErasure: the service erased the envelopes of these
// events in the same append. The service's own events in the ranges keep their envelopes, and
// events that were already erased are covered by the earlier statement.
type Erasure struct {
	Ranges []id.Range // not empty, ascending, disjoint
	Reason string     // a code of 1 to 32 characters of a-z, 0-9 and _, never free text
}

// Payload returns the payload of the event: {"ranges": [[begin, end], ...], "reason": code}, with
// half-open ranges of indices.
func (s *Erasure) Payload() map[string]any {
	ranges := make([][2]id.Index, len(s.Ranges))
	for i, r := range s.Ranges {
		ranges[i] = [2]id.Index{r.Begin, r.End}
	}
	return map[string]any{"ranges": ranges, "reason": s.Reason}
}

// Validate returns an error if no server would make the statement.
func (s *Erasure) Validate() error {
	if n := len(s.Ranges); n == 0 || n > MaxErasedRanges {
		return fmt.Errorf("%w: %d ranges", ErrErasure, n)
	}
	var end id.Index
	total := 0
	for _, r := range s.Ranges {
		if r.Begin >= r.End || r.Begin < end {
			return fmt.Errorf("%w: range [%d, %d) after %d", ErrErasure, r.Begin, r.End, end)
		}
		if end = r.End; r.End-r.Begin > MaxErasedEvents || total+r.Len() > MaxErasedEvents {
			return fmt.Errorf("%w: more than %d events", ErrErasure, MaxErasedEvents)
		}
		total += r.Len()
	}
	if n := len(s.Reason); n == 0 || n > 32 {
		return fmt.Errorf("%w: reason of %d characters", ErrErasure, n)
	}
	for _, c := range []byte(s.Reason) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return fmt.Errorf("%w: reason is not a code", ErrErasure)
		}
	}
	return nil
}

// Covers reports whether one of the ranges contains i.
func (s *Erasure) Covers(i id.Index) bool {
	for _, r := range s.Ranges {
		if r.Contains(i) {
			return true
		}
	}
	return false
}

// ErrErasure is wrapped for an erasure that no server would state.
var ErrErasure = fmt.Errorf("erasure: %w", id.ErrMalformed)

// ParseErasure parses the statement of an event of KindErasure. It accepts exactly what a server
// states. The caller must check who signed the event, and that the ranges end at or before its
// index.
func ParseErasure(e *Envelope) (Erasure, error) {
	var statement struct {
		Ranges [][2]id.Index `json:"ranges"`
		Reason string        `json:"reason"`
	}
	if e.ActionKind != KindErasure {
		return Erasure{}, fmt.Errorf("%w: action_kind %s", ErrErasure, e.ActionKind)
	}
	if err := json.Unmarshal(e.Payload, &statement, json.RejectUnknownMembers(true)); err != nil {
		return Erasure{}, fmt.Errorf("%w: payload: %w", ErrErasure, err)
	}
	read := Erasure{Ranges: make([]id.Range, len(statement.Ranges)), Reason: statement.Reason}
	for i, r := range statement.Ranges {
		read.Ranges[i] = id.Range{Begin: r[0], End: r[1]}
	}
	return read, read.Validate()
}
