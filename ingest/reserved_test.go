package ingest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
)

const reservedEvent = "An event_id that begins with ledger_ or stp_ is reserved for the server"

// store appends an envelope like a server without the rule.
func (w *world) store(m *member, body string) {
	w.Helper()
	envelope, err := event.Parse([]byte(body), event.Options{MaxBytes: 1 << 20, Organization: m.id})
	if err != nil {
		w.Fatal(err)
	}
	_, err = w.Ledgers.Append(w.Context(), m.tenant, func(_ context.Context, s *log.State) (log.Submission, error) {
		return log.Submission{Drafts: []log.Draft{log.NewDraft(s.Identity(), envelope, log.Attestation{
			Form: event.FormDigest, PublicKey: did.Multikey(m.agent.Private.Public().Bytes()), Signer: event.SignerAgent, Custody: event.CustodyAgent, Disclosure: id.DiscloseCommitment,
			Policy: event.Policy{Declared: id.Allow, Effective: id.Allow},
		})}}, nil
	})
	if err != nil {
		w.Fatal(err)
	}
}

// New events cannot take reserved names. Events stored earlier under such a name are answered as before. Similar
// names are allowed.
func TestEventNamesOfTheServer(t *testing.T) {
	w := newWorld(t)
	stored := map[string]string{}
	for _, name := range []string{"ledger_approval:0011", "stp_00112233"} {
		stored[name] = w.envelope(&w.red, name, nil)
		w.store(&w.red, stored[name])
	}
	before := w.sizes()
	for _, name := range []string{"ledger_", "ledger_x", "stp_", "stp_00", "stp_00112233445566778899aabbccddeeff"} {
		envelope := w.envelope(&w.red, name, nil)
		w.expect(w.send(&w.red, envelope), 422, reservedEvent)
		w.expect(w.send(&w.red, envelope, "Idempotency-Key: "+name), 422, reservedEvent)
		if a := w.batch(&w.red, ndjson(envelope)); !strings.Contains(a.Body.String(), `{"status_code":422,"error":"`+reservedEvent+`"}`) {
			t.Errorf("%s in a batch: got %s", name, a.Body)
		}
	}
	for name, envelope := range stored {
		w.expectReplayed(w.send(&w.red, envelope), name)
		if a := w.batch(&w.red, ndjson(envelope)); !strings.Contains(a.Body.String(), `"status_code":200`) {
			t.Errorf("%s again in a batch: got %s", name, a.Body)
		}
		w.expect(w.send(&w.red, w.envelope(&w.red, name, fields{"trace_id": "other"})), 422, "event_id was used with another event")
		w.expect(w.send(&w.blue, w.envelope(&w.blue, name, nil)), 422, reservedEvent)
	}
	if after := w.sizes(); after != before {
		t.Errorf("sizes went from %v to %v, want nothing stored", before, after)
	}
	for _, name := range []string{"ledger", "Ledger_x", "stp", "step_1", "evt_ledger_1", "_stp_"} {
		w.mustCreate(&w.red, name, nil)
		w.mustCreate(&w.blue, name, nil)
	}
}
