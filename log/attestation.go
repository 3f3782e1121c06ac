package log

import (
	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/verify"
)

// Attestation is the statement of the server about an envelope, beside the envelope itself
// and the fields that the sequencer adds.
type Attestation struct {
	Form           event.Form
	PublicKey      string // Multikey
	Signer         event.Signer
	Custody        event.Custody
	IngestKeyID    string // "" for the server's own
	Policy         event.Policy
	Disclosure     id.Disclosure
	IdempotencyKey string // of the ingest key; "" for none
	Cap            uint64 // counted events allowed in the month; 0: no cap

	// With claims, the sequencer asks Decide for the policy in place of Policy, as Draft.Decide says.
	Claims []Claim
	Decide func(before []decimal.Decimal) event.Policy
}

// NewDraft renders the record of an envelope for the ledger of identity. Events
// of the system's own do not count against the plan.
func NewDraft(identity *Identity, e *event.Envelope, a Attestation) Draft {
	record := event.Record{
		Origin: identity.Origin, OrganizationID: identity.Organization,
		EventID: e.EventID, AgentID: e.AgentID, KeyID: e.KeyID,
		PublicKey: a.PublicKey, Signer: a.Signer, Custody: a.Custody,
		EventDigest: e.Digest, SigForm: a.Form.String(), SigValueB64: e.SignatureB64,
		IngestKeyID: a.IngestKeyID, Policy: a.Policy,
	}
	system := a.Signer == event.SignerSystem
	var decide Decide
	if len(a.Claims) > 0 {
		decide = decideRecord(record, a.Decide)
	}
	return Draft{
		ID: e.EventID, IdempotencyKey: idempotencyText(a.IngestKeyID, a.IdempotencyKey),
		Columns: storage.Columns{
			Agent: e.AgentID, Trace: e.TraceID, Tool: e.Tool, ActionKind: e.ActionKind,
			Effective: a.Policy.Effective, Disclosure: verify.Disclosed(a.Disclosure, a.Signer, e.ActionKind),
		},
		Record: record.Frame(), Envelope: e.Canonical,
		Counted: !system, Cap: a.Cap,
		Claims: a.Claims, Decide: decide,
	}
}

// decideRecord is apart from NewDraft so that only drafts with claims have their record on the heap.
func decideRecord(record event.Record, decide func([]decimal.Decimal) event.Policy) Decide {
	return func(before []decimal.Decimal) (event.Frame, event.Policy) {
		record.Policy = decide(before)
		return record.Frame(), record.Policy
	}
}
