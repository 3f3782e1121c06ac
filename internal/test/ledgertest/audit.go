package ledgertest

import (
	"testing"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// Statement is a statement found in a ledger.
type Statement struct {
	Kind      string
	Principal string
	Payload   string // canonical JSON
}

// Audit verifies a tenant's ledger as an outsider with all documents would: each entry is proven and linked, each
// record matches its entry, and each envelope is signed and matches its record. It returns the server's own events in
// order.
func (s *Service) Audit(t testing.TB, tenant id.Tenant) []Statement {
	t.Helper()
	state := s.State(t, tenant)
	var statements []Statement
	var before event.Entry
	for e, err := range s.Ledgers.Events(t.Context(), state, 0, state.Size(),
		storage.FieldRecord|storage.FieldEnvelope) {
		if err != nil {
			t.Fatal(err)
		}
		s.auditEntry(t, state, e, before)
		before = log.EntryOf(e)
		if e.ErasedBy != 0 {
			continue
		}
		envelope, signer := auditEnvelope(t, e)
		if signer == event.SignerSystem {
			statements = append(statements, Statement{envelope.ActionKind, envelope.ActorPrincipal, string(envelope.Payload)})
		}
	}
	return statements
}

// auditEntry verifies the bundle that the public would get.
func (s *Service) auditEntry(t testing.TB, state *log.State, e storage.Event, before event.Entry) {
	t.Helper()
	key := state.VerifierKey()
	parts := verify.Parts{
		Organization: state.Identity().Organization, Slug: "audited", Event: e.ID, Index: e.Index,
		Entry: log.EntryOf(e), Proof: s.proof(t, state, e.Index), Previous: before,
		Checkpoint: tlog.Checkpoint{Origin: state.Identity().Origin, Size: state.Size(), Root: state.Root()},
		Note:       state.Checkpoint(), Key: key,
		ActionKind: e.ActionKind, Disclosure: id.DiscloseRecord, Record: e.Record,
	}
	if e.Index > 0 {
		parts.PreviousProof = s.proof(t, state, e.Index-1)
	}
	bundle, err := verify.NewBundle(parts)
	if err != nil {
		t.Fatal(err)
	}
	report := verify.Check(bundle, verify.Options{Key: &key})
	if !report.OK || report.RecordOK == nil || report.SignatureOK == nil {
		t.Errorf("event %d does not verify: %v", e.Index, report.Errors)
	}
}

func (s *Service) proof(t testing.TB, state *log.State, at id.Index) []id.Hash {
	t.Helper()
	_, _, proof, err := s.Ledgers.Inclusion(t.Context(), state, at, state.Size())
	if err != nil {
		t.Fatal(err)
	}
	return proof
}

// auditEnvelope verifies a stored envelope against its record. The record determines which key signed, because an
// envelope can claim any actor.
func auditEnvelope(t testing.TB, e storage.Event) (*event.Envelope, event.Signer) {
	t.Helper()
	record, err := event.ParseRecord(e.Record)
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := event.Parse(e.Envelope, event.Options{Organization: record.OrganizationID, Server: true})
	if err != nil {
		t.Fatal(err)
	}
	b, err := did.ParseMultikey(record.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	public, err := edkey.ParsePublic(b[:])
	if err != nil {
		t.Fatal(err)
	}
	_, ok := envelope.Verify(public)
	if !ok || envelope.Digest != record.EventDigest || envelope.EventID != record.EventID {
		t.Errorf("event %d: the envelope does not match the record", e.Index)
	}
	ours := record.Signer != event.SignerAgent
	if ours && envelope.ActorType != "system" || ours != event.ReservedKey(string(envelope.KeyID)) {
		t.Errorf("event %d: signer %s and actor_type %s", e.Index, record.Signer, envelope.ActorType)
	}
	return envelope, record.Signer
}
