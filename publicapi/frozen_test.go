package publicapi_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
	"github.com/agentledger/agentledger/verify"
)

// reopen restarts the service on another store with the same anchors.
func (w *world) reopen(store *storagetest.Model) {
	w.Helper()
	if err := w.ledgers.Close(); err != nil {
		w.Fatal(err)
	}
	w.store = store
	w.open(w.anchors)
}

// rolledBack returns a world in which Red has lost a published event: "one" is stored, "two" is lost. Blue has lost
// nothing.
func rolledBack(t *testing.T) (w *world, note []byte) {
	w = newWorld(t)
	w.append(&w.red, id.DiscloseFull, "one")
	w.append(&w.blue, id.DiscloseFull, "one", "two")
	older := w.store.Reopen()
	w.append(&w.red, id.DiscloseFull, "two")
	note = bytes.Clone(w.state(&w.red).Checkpoint())
	w.reopen(older)
	return w, note
}

// The responses about a ledger that has lost events are consistent, and do not depend on what is stored.
func TestRolledBackHead(t *testing.T) {
	w, note := rolledBack(t)
	for _, target := range []string{"/v1/public/orgs/red/transparency/checkpoint", "/o/" + w.red.id.String() + "/checkpoint"} {
		if got := w.get(target).Body.Bytes(); !bytes.Equal(got, note) {
			t.Errorf("%s: got %q, want %q", target, got, note)
		}
	}
	s := w.state(&w.red)
	const target = "/v1/public/orgs/red/transparency/head"
	want := `{"organization_slug":"red","tree_size":2,"latest_log_index":1,"latest_leaf_hash":null,"latest_published_at":null,` +
		`"root_hash":"` + s.Shown().Root.String() + `","origin":"` + string(w.red.origin()) + `",` +
		`"checkpoint":"` + strings.ReplaceAll(string(note), "\n", `\n`) + `","fault":"frozen"}`
	if got := w.get(target).Body.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if c, err := verify.CheckHead(read[verify.Head](w, target), s.VerifierKey()); err != nil || c != s.Shown() {
		t.Errorf("got %+v, %v, want %+v", c, err, s.Shown())
	}
}

func TestRolledBackEntries(t *testing.T) {
	w, _ := rolledBack(t)
	prefix := "/o/" + w.red.id.String()
	for _, target := range []string{
		"/v1/public/orgs/red/verify/one", "/v1/public/orgs/red/verify/one?verify=1", "/v1/public/orgs/red/verify/one?format=tlog-proof", "/v1/public/orgs/red/verify/one?format=cose",
		"/v1/public/orgs/red/verify/two", "/v1/public/orgs/red/verify/three",
		redInclusion + "?log_index=0", redInclusion + "?log_index=0&tree_size=1", redInclusion + "?event_id=one", redInclusion + "?log_index=1&tree_size=2",
		redConsistency + "?from=0", redConsistency + "?from=1&to=1", redConsistency + "?from=1&to=2",
		prefix + "/tile/0/000.p/1", prefix + "/tile/0/000.p/2", prefix + "/tile/entries/000.p/1", prefix + "/tile/entries/000.p/2",
	} {
		w.failed(target, http.StatusServiceUnavailable, `{"error":"The organization's ledger is frozen","code":"frozen"`)
	}
}

// didTargets are the URLs of the DID documents of an organization's agent.
func didTargets(o *owner) []string {
	agent := string(o.agent.Agent)
	return []string{
		"/v1/public/agents/" + agent + "/did", "/v1/public/agents/" + agent + "/did.json",
		"/v1/public/did/did:web:ledger.example%253A8443:v1:public:agents:" + agent,
		"/v1/public/did/" + did.KeyDID(o.agent.Private.Public().Bytes()),
	}
}

// A key whose revocation was lost is not served as active.
func TestRolledBackKeys(t *testing.T) {
	w := newWorld(t)
	older := w.store.Reopen()
	if _, err := w.agents.RevokeKey(t.Context(), w.red.tenant, "acc", w.red.agent.Agent, w.red.agent.Key, agent.Revocation{}); err != nil {
		t.Fatal(err)
	}
	w.reopen(older)
	for _, target := range didTargets(&w.red) {
		w.failed(target, http.StatusServiceUnavailable, `{"error":"The organization's ledger is frozen","code":"frozen"`)
	}
	for _, target := range didTargets(&w.blue) {
		w.get(target)
	}
	w.missing("/v1/public/agents/nobody/did.json")
}

// A key that two organizations registered is known while the records of one of them can be trusted.
func TestRolledBackSharedKey(t *testing.T) {
	w, _ := rolledBack(t)
	shared := w.red.agent.Private
	target := "/v1/public/did/" + did.KeyDID(shared.Public().Bytes())
	w.failed(target, http.StatusServiceUnavailable, `"code":"frozen"`)
	w.registerPrivate(&w.blue, shared)
	w.get(target)
}

// DID documents are not served if, for whatever reason, the ledger accepts no events.
func TestClosedLedgersHaveNoDocuments(t *testing.T) {
	for level, message := range map[string]string{
		"frozen":    "The organization's ledger is frozen",
		"read_only": "The organization's ledger is read-only until its checkpoint is adopted",
		"importing": "The organization is being imported",
		"moved":     "The organization was moved to another place",
	} {
		w := newWorld(t)
		w.fault(&w.red, level)
		for _, target := range didTargets(&w.red) {
			w.failed(target, http.StatusServiceUnavailable, `{"error":"`+message+`","code":"`+level+`"`)
		}
		for _, target := range didTargets(&w.blue) {
			w.get(target)
		}
	}
	w := newWorld(t)
	w.fault(&w.red, "suspect")
	for _, target := range didTargets(&w.red) {
		w.get(target)
	}
}

// fault records a fault of Red and restarts.
func (w *world) fault(o *owner, level string) {
	w.Helper()
	fault := storage.Change{
		Kind: "ledger_fault", If: storage.AnyVersion,
		Value: []byte(`{"level":"` + level + `","reason":"tile 0/3: is not the tree's","at":"2026-11-20T12:00:00.000Z"}`),
	}
	if err := w.store.Write(w.Context(), o.tenant, []storage.Change{fault}); err != nil {
		w.Fatal(err)
	}
	w.reopen(w.store)
}

// Log keys and the other organization are not affected.
func TestRolledBackRest(t *testing.T) {
	w, _ := rolledBack(t)
	for _, target := range []string{
		"/v1/public/orgs/red/transparency/keys", "/v1/public/orgs/red/transparency/policy",
		"/v1/public/orgs/blue/transparency/inclusion?log_index=0", "/v1/public/orgs/blue/transparency/consistency?from=1",
		"/o/" + w.blue.id.String() + "/tile/0/000.p/2", "/o/" + w.blue.id.String() + "/tile/entries/000.p/2",
	} {
		w.get(target)
	}
	w.missing("/o/" + w.red.id.String() + "/tile/0/0")
	if h := read[verify.Head](w, "/v1/public/orgs/blue/transparency/head"); h.TreeSize != 2 || h.LatestLeafHash == nil || h.Fault != "" {
		t.Errorf("the other organization's head: %+v", h)
	}
	b := read[verify.Bundle](w, "/v1/public/orgs/blue/verify/one?verify=1")
	if !b.Verification.OK || b.OperatorStatement.Fault != nil {
		t.Errorf("the other organization's bundle: %+v, %+v", b.Verification, b.OperatorStatement)
	}
}

// After the ledger that extends the anchor is restored, everything is served again.
func TestRolledForward(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseFull, "one")
	older, newer := w.store.Reopen(), w.store
	shown := w.append(&w.red, id.DiscloseFull, "two")[0]
	w.reopen(older)
	w.failed("/v1/public/orgs/red/verify/one", http.StatusServiceUnavailable, `"code":"frozen"`)
	w.reopen(newer)
	h := read[verify.Head](w, "/v1/public/orgs/red/transparency/head")
	if h.Fault != "" || h.LatestLeafHash == nil || *h.LatestLeafHash != shown.EventHash {
		t.Errorf("got %+v, want the head that ends with %s", h, shown.EventHash)
	}
	if b := read[verify.Bundle](w, "/v1/public/orgs/red/verify/one?verify=1"); !b.Verification.OK {
		t.Errorf("got %v", b.Verification.Errors)
	}
}

// A ledger that is frozen because of damage, but has the tree of its checkpoint, is served with its fault.
func TestFrozenForDamage(t *testing.T) {
	w := newWorld(t)
	last := w.append(&w.red, id.DiscloseFull, "one", "two")[1]
	w.append(&w.blue, id.DiscloseFull, "one")
	w.fault(&w.red, "frozen")
	h := read[verify.Head](w, "/v1/public/orgs/red/transparency/head")
	if _, err := verify.CheckHead(h, w.state(&w.red).VerifierKey()); err != nil || h.Fault != "frozen" || h.LatestLeafHash == nil || *h.LatestLeafHash != last.EventHash {
		t.Errorf("got %+v, %v, want the head with its latest entry, marked", h, err)
	}
	b := read[verify.Bundle](w, "/v1/public/orgs/red/verify/one?verify=1")
	if !b.Verification.OK || b.OperatorStatement.Fault == nil || *b.OperatorStatement.Fault != "frozen" {
		t.Errorf("got %+v, %+v", b.Verification, b.OperatorStatement)
	}
	for _, target := range []string{
		redInclusion + "?log_index=0", redConsistency + "?from=1",
		"/o/" + w.red.id.String() + "/tile/0/000.p/2", "/o/" + w.red.id.String() + "/tile/entries/000.p/2",
	} {
		w.get(target)
	}
	if h := read[verify.Head](w, "/v1/public/orgs/blue/transparency/head"); h.Fault != "" {
		t.Errorf("the other organization's head: %+v", h)
	}
}
