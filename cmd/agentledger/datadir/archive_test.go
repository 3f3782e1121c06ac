package datadir

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
)

// CheckEnvelope accepts only the envelope that the record names.
func TestCheckEnvelope(t *testing.T) {
	agent := ledgertest.NewAgent()
	made := func(tenant id.Tenant, name string) (record, envelope []byte) {
		e := agent.Envelope(t, tenant, name, nil)
		a := agent.Attestation(e)
		r := event.Record{Origin: ledgertest.Origin(tenant), OrganizationID: e.OrganizationID, SequenceNum: 1,
			EventID: e.EventID, AgentID: e.AgentID, KeyID: e.KeyID, PublicKey: a.PublicKey, Signer: a.Signer,
			Custody: a.Custody, EventDigest: e.Digest, SigForm: a.Form.String(), SigValueB64: e.SignatureB64,
			IngestKeyID: a.IngestKeyID, ReceivedAt: 1_780_000_000_000, Policy: a.Policy}
		return r.Text(), e.Canonical
	}
	record, envelope := made(ledgertest.Red, "e1")
	_, sibling := made(ledgertest.Red, "e2")
	_, others := made(ledgertest.Blue, "e1")
	if err := checkEnvelope(record, envelope); err != nil {
		t.Errorf("the record's envelope: %v", err)
	}
	for name, wrong := range map[string]struct{ record, envelope string }{
		"of another event":        {string(record), string(sibling)},
		"of another organization": {string(record), string(others)},
		"another payload":         {string(record), strings.Replace(string(envelope), `"payload":{`, `"payload":{"a":1,`, 1)},
		"no envelope":             {string(record), "{}"},
		"empty":                   {string(record), ""},
		"no record":               {"{}", string(envelope)},
	} {
		if err := checkEnvelope([]byte(wrong.record), []byte(wrong.envelope)); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}
