package audit

import (
	"bytes"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/keytable"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// verdict is the result of checking the documents of one event without the events around it.
type verdict struct {
	record   string     // fault of the record, or ""
	envelope string     // fault of the envelope if the record is valid, or ""
	received id.Instant // received_at of the record
	counted  bool       // the event counts toward the monthly limit
	newest   id.Instant // newest_received_at of a ledger_clock event, or 0

	erasure *event.Erasure // of a ledger_envelope_erased event, or nil
	result  *event.Record  // of a result, whose decision must be that of its intent; or nil
}

// toFinding returns the fault of the documents of an event, or nil.
func (v verdict) toFinding(i *log.Identity, at id.Index) *Finding {
	switch {
	case v.record != "":
		return newFindingAt(i, log.Suspect, "record", uint64(at), v.record)
	case v.envelope != "":
		return newFindingAt(i, log.Suspect, "envelope", uint64(at), v.envelope)
	}
	return nil
}

// checker checks documents of events and caches decoded keys. It must be used by one goroutine at a time.
type checker struct {
	keys     keytable.Decoder
	tables   *keytable.Tables   // shared by all checkers of an inspector
	verified *keytable.Verified // of the inspector that is using the checker
}

// checkDocuments checks the documents of an event of a ledger.
func (c *checker) checkDocuments(i *log.Identity, e *storage.Event) verdict {
	if e.Archived {
		return judgeArchived(e)
	}
	if event.RecordHash(e.Record) != e.Entry.Record {
		return verdict{record: "is not the one that the entry commits to"}
	}
	r, err := event.ParseRecord(e.Record)
	switch {
	case err != nil:
		return verdict{record: "is malformed"}
	case r.SequenceNum != e.Index.Sequence() || r.Origin != i.Origin || r.OrganizationID != i.Organization:
		return verdict{record: "belongs to another place"}
	case r.EventID != e.ID || r.AgentID != e.Agent || r.ReceivedAt != e.ReceivedAt || r.Policy.Effective != e.Effective:
		return verdict{record: "differs from its columns"}
	}
	v := verdict{received: r.ReceivedAt, counted: r.Signer != event.SignerSystem}
	if r.Policy.Intent != "" {
		v.result = &r
	}
	if e.ErasedBy != 0 {
		v.envelope = checkErasedPlace(e, &r)
		return v
	}
	var envelope *event.Envelope
	if envelope, v.envelope = c.checkEnvelope(i, e, &r); v.envelope == "" && r.Signer == event.SignerSystem {
		v.readStatement(envelope, &r)
	}
	return v
}

// judgeArchived returns the verdict on an event whose documents are archived and were not read.
func judgeArchived(e *storage.Event) verdict {
	reserved := event.ReservedAgent(string(e.Agent))
	v := verdict{received: e.ReceivedAt, counted: !reserved}
	if e.ErasedBy != 0 && (e.ErasedBy <= e.Index || reserved) {
		v.envelope = "was erased by an event that is not behind it, or is the service's own"
	}
	return v
}

// readStatement parses the statements of the service that an examination uses.
func (v *verdict) readStatement(envelope *event.Envelope, r *event.Record) {
	v.newest = log.ReadClockChange(envelope, r.ReceivedAt)
	if envelope.ActionKind != event.KindErasure {
		return
	}
	erasure, err := event.ParseErasure(envelope)
	if err != nil {
		v.envelope = "states no erasure"
		return
	}
	v.erasure = &erasure
}

// checkErasedPlace returns the fault of an event whose envelope was erased, or "".
func checkErasedPlace(e *storage.Event, r *event.Record) string {
	switch {
	case e.Envelope != nil:
		return "is there, and was erased"
	case e.ErasedBy <= e.Index:
		return "was erased by an event that is not behind it"
	case r.Signer == event.SignerSystem:
		return "is the service's own, which is never erased"
	}
	return ""
}

// checkEnvelope parses the envelope of an event and returns its fault, or "".
func (c *checker) checkEnvelope(i *log.Identity, e *storage.Event, r *event.Record) (*event.Envelope, string) {
	envelope, err := event.Parse(e.Envelope,
		event.Options{Server: true, MaxBytes: len(e.Envelope) + 1, Organization: i.Organization})
	return envelope, c.compareEnvelope(i.Tenant, envelope, err, e, r)
}

// compareEnvelope compares an envelope with its record and columns. err is the error of parsing it.
func (c *checker) compareEnvelope(t id.Tenant, envelope *event.Envelope, err error, e *storage.Event,
	r *event.Record) string {
	switch {
	case e.Envelope == nil:
		return "is missing"
	case err != nil || !bytes.Equal(envelope.Canonical, e.Envelope):
		return "is malformed"
	case envelope.Digest != r.EventDigest || envelope.SignatureB64 != r.SigValueB64:
		return "is not the one that the record is about"
	case envelope.EventID != r.EventID || envelope.AgentID != r.AgentID || envelope.KeyID != r.KeyID ||
		envelope.Decision != r.Policy.Declared:
		return "differs from the record"
	case envelope.TraceID != e.Trace || envelope.Tool != e.Tool || envelope.ActionKind != e.ActionKind:
		return "differs from the columns"
	case r.Policy.Intent != "" && !envelope.IsResultOf(r.Policy.Intent):
		return "is not a result of the event that the record names"
	}
	key, err := c.keys.Decode(r.PublicKey)
	if err != nil {
		return "is signed by a key that is none"
	}
	if form, ok := c.verifySignature(t, key, envelope); !ok || form.String() != r.SigForm {
		return "is not signed as the record says"
	}
	return ""
}

// verifySignature is Envelope.Verify, unless the signature was verified before.
func (c *checker) verifySignature(t id.Tenant, key edkey.Public, envelope *event.Envelope) (event.Form, bool) {
	if c.verified.Has(key, envelope.Digest, envelope.Signature) {
		return event.FormDigest, true
	}
	return envelope.Verify(c.tables.Verifier(t, key))
}
