package verify

import (
	"encoding/base64"
	"fmt"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
)

// checkRecord checks that the record is canonical, that the entry commits to it, and that it names
// the bundle's event. If the disclosure includes the record, the record MUST be present.
func (c *checker) checkRecord() error {
	b := c.bundle
	if b.Record == nil && (b.Disclosure == id.DiscloseRecord || b.Disclosure == id.DiscloseFull) {
		return fmt.Errorf("missing, though disclosure promises it: %w", ErrMismatch)
	}
	if c.recordErr != nil {
		return c.recordErr
	}
	if c.entryErr != nil {
		return c.entryErr
	}
	if event.RecordHash([]byte(*b.Record)) != c.entry.Record {
		return fmt.Errorf("record and what the entry commits to: %w", ErrMismatch)
	}
	r := &c.record
	if r.Origin != b.Origin || r.OrganizationID != b.OrganizationID || r.SequenceNum != b.SequenceNum ||
		r.EventID != b.EventID {
		return fmt.Errorf("record and the bundle's origin, organization_id, sequence_num, event_id: %w", ErrMismatch)
	}
	return nil
}

// checkSignature checks that the record's key signed the digest or the envelope, depending on the
// record's form. An unreadable record is reported by checkRecord.
func (c *checker) checkSignature() error {
	if c.recordErr != nil {
		return errUndisclosed
	}
	if c.record.SigForm == event.FormCanonical.String() && c.envelope == nil {
		return errUndisclosed
	}
	key, err := parsePublicKey(c.record.PublicKey)
	if err != nil {
		return fmt.Errorf("public_key: %w", err)
	}
	return checkRecordSignature(key, &c.record, c.envelope)
}

// checkRecordSignature checks that key signed the record's event_digest or the envelope, depending
// on the record's form. The envelope may be nil.
func checkRecordSignature(key edkey.Public, r *event.Record, e *event.Envelope) error {
	message := r.EventDigest[:]
	if r.SigForm == event.FormCanonical.String() {
		if e == nil {
			return fmt.Errorf("no envelope: %w", ErrMismatch)
		}
		message = e.Signed()
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(r.SigValueB64)
	if err != nil || base64.StdEncoding.EncodeToString(signature) != r.SigValueB64 {
		return fmt.Errorf("sig_value_b64: %w", ErrMalformed)
	}
	if !key.Verify(message, signature) {
		return fmt.Errorf("not the public key's: %w", ErrMismatch)
	}
	return nil
}

func parsePublicKey(multikey string) (edkey.Public, error) {
	b, err := did.ParseMultikey(multikey)
	if err != nil {
		return edkey.Public{}, err
	}
	return edkey.ParsePublic(b[:])
}

// checkEnvelope checks that event_digest is the envelope's digest and that the envelope agrees with
// the record, including the intent. If the disclosure includes the envelope, it MUST be present
// unless it was erased.
func (c *checker) checkEnvelope() error {
	b := c.bundle
	if b.Envelope == nil && b.Disclosure == id.DiscloseFull && b.ErasedAt == nil {
		return fmt.Errorf("missing, though disclosure promises it: %w", ErrMismatch)
	}
	if c.envelopeErr != nil {
		return c.envelopeErr
	}
	if c.recordErr != nil {
		return errUndisclosed
	}
	return checkRecordEnvelope(&c.record, c.envelope)
}

// checkRecordEnvelope checks that event_digest is the envelope's digest and that the envelope
// agrees with the record, including the intent.
func checkRecordEnvelope(r *event.Record, e *event.Envelope) error {
	if e.Digest != r.EventDigest {
		return fmt.Errorf("envelope and event_digest: %w", ErrMismatch)
	}
	if e.OrganizationID != r.OrganizationID || e.EventID != r.EventID || e.AgentID != r.AgentID || e.KeyID != r.KeyID {
		return fmt.Errorf("envelope and the record's organization_id, event_id, agent_id, key_id: %w", ErrMismatch)
	}
	if e.Decision != r.Policy.Declared {
		return fmt.Errorf("policy_decision and policy.declared: %w", ErrMismatch)
	}
	if r.Policy.Intent != "" && !e.IsResultOf(r.Policy.Intent) {
		return fmt.Errorf("payload.phase, parent_event_id and policy.intent: %w", ErrMismatch)
	}
	return nil
}
