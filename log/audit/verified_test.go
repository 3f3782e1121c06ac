package audit

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/keytable"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// storedEvent returns an event of an organization as stored. If a signature is given, it replaces the event's own and
// is cached as verified under the key.
func storedEvent(t testing.TB, of *log.Identity, key edkey.Private, signature []byte) (storage.Event, *event.Envelope) {
	t.Helper()
	e, err := event.SignEnvelope(fmt.Appendf(nil, `{"schema_version":1,"event_id":"evt","organization_id":%q,
		"trace_id":"trc","agent_id":"agt","key_id":"key","emitted_at":"2026-11-20T12:00:00.000Z","actor_type":"agent",
		"actor_principal":"svc","action_kind":"tool_call","policy_decision":"allow","payload":{}}`,
		of.Organization.String()), key)
	if err == nil && signature != nil {
		other := strings.Replace(string(e.Canonical), e.SignatureB64, base64.StdEncoding.EncodeToString(signature), 1)
		e, err = event.Parse([]byte(other), event.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	r := event.Record{Origin: of.Origin, OrganizationID: of.Organization, SequenceNum: 1, EventID: e.EventID,
		AgentID: e.AgentID, KeyID: e.KeyID, PublicKey: did.Multikey(key.Public().Bytes()), Signer: event.SignerAgent,
		Custody: event.CustodyAgent, EventDigest: e.Digest, SigForm: "digest", SigValueB64: e.SignatureB64,
		ReceivedAt: 1, Policy: event.Policy{Declared: id.Allow, Effective: id.Allow}}
	text := r.Text()
	return storage.Event{ID: e.EventID, Record: text, Envelope: e.Canonical,
		Columns: storage.Columns{Agent: e.AgentID, Trace: e.TraceID, ActionKind: e.ActionKind, ReceivedAt: 1,
			Effective: id.Allow}, Entry: storage.Entry{Record: event.RecordHash(text)}}, e
}

// BenchmarkCheckDocuments measures the check of one event, with its signature verified by a table, and with a cached
// verification.
func BenchmarkCheckDocuments(b *testing.B) {
	of := &log.Identity{Tenant: 1, Organization: id.Organization{1}, Origin: "log.example/red"}
	key := edkey.NewPrivate()
	e, envelope := storedEvent(b, of, key, nil)
	var v keytable.Verified
	v.Note(key.Public(), envelope.Digest, envelope.Signature)
	n := newInspector(1)
	for name, verified := range map[string]*keytable.Verified{"verify": nil, "verified": &v} {
		b.Run(name, func(b *testing.B) {
			c := <-n.free
			defer func() { n.free <- c }()
			c.verified = verified
			for b.Loop() {
				if got := c.checkDocuments(of, &e); got.record+got.envelope != "" {
					b.Fatal(got)
				}
			}
		})
	}
}

// A cached signature is not verified again for a new event: the one here is invalid and could only be cached by
// mistake. A whole pass in the same process verifies it and finds it. The other organization's cache entry does not
// apply.
func TestVerifiedSignatures(t *testing.T) {
	red := &log.Identity{Tenant: 1, Organization: id.Organization{1}, Origin: "log.example/red"}
	blue := &log.Identity{Tenant: 2, Organization: id.Organization{2}, Origin: "log.example/blue"}
	key, other := edkey.NewPrivate(), edkey.NewPrivate()
	var v keytable.Verified
	pass := newInspector(1)
	fresh := pass.withVerified(&v)
	const bad = "is not signed as the record says"
	check := func(name string, n *inspector, of *log.Identity, signature []byte, want string) {
		t.Helper()
		e, _ := storedEvent(t, of, key, signature)
		if got := n.inspectAll(of, []storage.Event{e})[0]; got.envelope != want || got.record != "" {
			t.Errorf("%s: got %+v, want %q", name, got, want)
		}
	}
	forged := other.Sign([]byte("another text"))
	_, noted := storedEvent(t, blue, key, forged[:])
	v.Note(key.Public(), noted.Digest, noted.Signature)
	check("good, not noted", fresh, red, nil, "")
	check("bad, not noted", fresh, red, forged[:], bad)
	check("bad, noted", fresh, blue, forged[:], "")
	check("bad, noted, in a whole pass", pass, blue, forged[:], bad)
	check("good, in a whole pass", pass, red, nil, "")
	check("bad, noted for the neighbour", fresh, red, forged[:], bad)
}
