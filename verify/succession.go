package verify

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// Succession states which log another log succeeds.
type Succession struct {
	Predecessor id.Origin `json:"predecessor"`
	Checkpoint  string    `json:"checkpoint"` // signed note: the predecessor's last known checkpoint
	Reason      string    `json:"reason"`     // given by the operator, not empty
}

// Last parses Checkpoint. The caller MUST check its signature. Errors wrap ErrMismatch or
// tlog.ErrMalformed.
func (s Succession) Last() (tlog.Checkpoint, error) {
	c, err := tlog.ReadCheckpoint([]byte(s.Checkpoint))
	if err == nil && c.Origin != s.Predecessor {
		err = fmt.Errorf("checkpoint of another log: %w", ErrMismatch)
	}
	return c, err
}

// ParseSuccession parses the payload of the first event of the log with an origin. It rejects
// unknown members. Errors wrap ErrMismatch or ErrMalformed.
func ParseSuccession(e *event.Envelope, origin id.Origin) (s Succession, err error) {
	if e.ActionKind != SuccessorKind {
		return s, fmt.Errorf("succession: not the first event of a successor: %w", ErrMismatch)
	}
	if err := json.Unmarshal(e.Payload, &s, json.RejectUnknownMembers(true)); err != nil {
		return s, fmt.Errorf("succession: %w: %w", ErrMalformed, err)
	}
	if s.Reason == "" || s.Predecessor == "" || s.Predecessor.Next() != origin {
		return s, fmt.Errorf("succession: predecessor or reason: %w", ErrMalformed)
	}
	if _, err := s.Last(); err != nil {
		return s, fmt.Errorf("succession: checkpoint: %w", err)
	}
	return s, nil
}

// ReadSuccession parses the first event of the log with an origin: its entry, and the documents
// that the entry commits to. The event must be one of the service's own and signed. Errors wrap
// ErrMismatch, ErrMalformed, event.ErrRecord or an error of event.Parse.
func ReadSuccession(origin id.Origin, entry event.Entry, record, envelope []byte) (s Succession, err error) {
	if event.RecordHash(record) != entry.Record || entry.Seq != 1 || entry.Prev != event.Genesis(origin) {
		return s, fmt.Errorf("succession: entry, and what it commits to: %w", ErrMismatch)
	}
	r, err := event.ParseRecord(record)
	if err != nil {
		return s, fmt.Errorf("succession: record: %w", err)
	}
	e, err := event.Parse(envelope, event.Options{MaxBytes: len(envelope) + 1, Server: true})
	if err != nil {
		return s, fmt.Errorf("succession: envelope: %w", err)
	}
	key, err := parsePublicKey(r.PublicKey)
	if err != nil {
		return s, fmt.Errorf("succession: public_key: %w", err)
	}
	form, signed := e.Verify(key)
	if !signed || form.String() != r.SigForm || e.Digest != r.EventDigest || r.Signer != event.SignerSystem ||
		r.Origin != origin {
		return s, fmt.Errorf("succession: envelope and record: %w", ErrMismatch)
	}
	return ParseSuccession(e, origin)
}

// Succession returns the succession that the bundle's event states. ok is false for any other
// event. The caller MUST check the bundle.
func (b *Bundle) Succession() (s Succession, ok bool) {
	if b.LogIndex != 0 || b.Record == nil || b.Envelope == nil {
		return s, false
	}
	entry, err := event.ParseEntry([]byte(b.Entry))
	if err != nil {
		return s, false
	}
	s, err = ReadSuccession(b.Origin, entry, []byte(*b.Record), []byte(*b.Envelope))
	return s, err == nil
}
