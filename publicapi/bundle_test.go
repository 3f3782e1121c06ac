package publicapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/publicapi"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

func TestBundle(t *testing.T) {
	w := newWorld(t)
	for disclosure, members := range map[id.Disclosure][]string{
		id.DiscloseCommitment: nil,
		id.DiscloseRecord:     {"record"},
		id.DiscloseFull:       {"envelope", "record"},
	} {
		first := disclosure.String() + ":first"
		w.append(&w.red, disclosure, first, disclosure.String()+":second")
		w.append(&w.blue, disclosure, first)
		for _, o := range []*owner{&w.red, &w.blue} {
			answer := w.get("/v1/public/orgs/" + string(o.slug) + "/verify/" + first)
			b, err := verify.ParseBundle(answer.Body.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			key := w.state(o).VerifierKey()
			if report := verify.Check(b, verify.Options{Key: &key}); !report.OK {
				t.Errorf("%s of %s: %v", first, o.slug, report.Errors)
			}
			if b.OrganizationID != o.id || b.OrganizationSlug != o.slug || string(b.EventID) != first {
				t.Errorf("%s of %s: got %s of %s", first, o.slug, b.EventID, b.OrganizationSlug)
			}
			if got := shown(t, answer.Body.Bytes()); !slices.Equal(got, members) {
				t.Errorf("%s: got %v disclosed, want %v", disclosure, got, members)
			}
			if got := bytes.Contains(answer.Body.Bytes(), []byte("secret")); got != (disclosure == id.DiscloseFull) {
				t.Errorf("%s: payload shown: %v", disclosure, got)
			}
		}
	}
}

// shown returns the present members among those that depend on the disclosure, sorted.
func shown(t *testing.T, bundle []byte) []string {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(bundle, &all); err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, name := range []string{"envelope", "erased_at", "record"} {
		if _, there := all[name]; there {
			found = append(found, name)
		}
	}
	return found
}

func TestBundleMembers(t *testing.T) {
	w := newWorld(t)
	receipts := w.append(&w.red, id.DiscloseCommitment, "one", "two")
	first := read[map[string]any](w, "/v1/public/orgs/red/verify/one")
	for name, want := range map[string]any{
		"version": 1.0, "sequence_num": 1.0, "log_index": 0.0, "previous_entry": nil, "previous_inclusion": nil,
		"event_hash": receipts[0].EventHash.String(), "origin": string(w.red.origin()), "disclosure": "commitment",
		"organization_id": w.red.id.String(), "checkpoint": string(w.state(&w.red).Checkpoint()),
		"log_key": w.state(&w.red).VerifierKey().String(),
	} {
		if got, there := first[name]; !there || got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	if _, there := first["verification"]; there {
		t.Error("verification is there without being asked for")
	}
	second := read[verify.Bundle](w, "/v1/public/orgs/red/verify/two")
	if second.PreviousEntry == nil || *second.PreviousEntry != first["entry"] || second.PreviousInclusion.LogIndex != 0 {
		t.Errorf("previous entry: got %v, want %v", second.PreviousEntry, first["entry"])
	}
}

func TestVerification(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseFull, "full")
	w.append(&w.red, id.DiscloseRecord, "record")
	w.append(&w.red, id.DiscloseCommitment, "commitment")
	for name, told := range map[string]struct{ record, envelope bool }{"full": {true, true}, "record": {true, false}, "commitment": {}} {
		b := read[verify.Bundle](w, "/v1/public/orgs/red/verify/"+name+"?verify=1")
		got := b.Verification
		if got == nil || !got.OK || !got.InclusionOK || !got.ChainOK || !got.CheckpointOK || got.CheckedAt != id.InstantOf(w.now) {
			t.Fatalf("%s: got %+v", name, got)
		}
		if (got.RecordOK != nil) != told.record || (got.SignatureOK != nil) != told.record || (got.EnvelopeOK != nil) != told.envelope {
			t.Errorf("%s: got %+v, want null for what is not disclosed", name, got)
		}
		stranger := verify.Check(&b, verify.Options{CheckedAt: got.CheckedAt})
		stranger.Unchecked = slices.DeleteFunc(stranger.Unchecked, func(s string) bool { return s == "verification" })
		if want, have := mustJSON(t, stranger), mustJSON(t, got); !bytes.Equal(have, want) {
			t.Errorf("%s: the server says %s, a stranger %s", name, have, want)
		}
		if b := read[verify.Bundle](w, "/v1/public/orgs/red/verify/"+name+"?verify=0"); b.Verification != nil {
			t.Errorf("%s: verify=0 verifies", name)
		}
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The server's own events are disclosed as records at most.
func TestSystemEventIsNeverFull(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseFull, "agents")
	w.register(&w.red)
	e, err := w.ledgers.Event(t.Context(), w.state(&w.red), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	answer := w.get("/v1/public/orgs/red/verify/" + string(e.ID) + "?verify=1")
	b := read[verify.Bundle](w, "/v1/public/orgs/red/verify/"+string(e.ID)+"?verify=1")
	if got := shown(t, answer.Body.Bytes()); !slices.Equal(got, []string{"record"}) || b.Disclosure != id.DiscloseRecord {
		t.Errorf("got %v disclosed (%s), want the record", got, b.Disclosure)
	}
	if !b.Verification.OK || b.Verification.SignatureOK == nil || !*b.Verification.SignatureOK {
		t.Errorf("got %+v, want the system key's signature to hold", b.Verification)
	}
}

func TestBundleForms(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, "one", "two", "three")
	const target = "/v1/public/orgs/red/verify/two"
	for _, c := range []struct{ query, accept, want string }{
		{"", "", "application/json"},
		{"", "*/*", "application/json"},
		{"", "application/json", "application/json"},
		{"", "text/html, application/xhtml+xml, */*;q=0.8", "application/json"},
		{"", "text/plain", "text/plain; charset=utf-8"},
		{"", "text/*", "text/plain; charset=utf-8"},
		{"", "application/json;q=0.5, text/plain", "text/plain; charset=utf-8"},
		{"", "application/json;q=0, */*", "text/plain; charset=utf-8"},
		{"", "text/plain;q=0.2, application/*;q=0.3", "application/json"},
		{"", "application/cose;q=0.2, text/plain;q=0.3", "text/plain; charset=utf-8"},
		{"", "image/png", "application/json"},
		{"", ";;, text/plain;q=x", "text/plain; charset=utf-8"},
		{"?format=tlog-proof", "", "text/plain; charset=utf-8"},
		{"?format=tlog-proof&verify=1", "application/json", "text/plain; charset=utf-8"},
		{"?format=json", "text/plain", "application/json"},
	} {
		answer := w.get(target+c.query, "Accept: "+c.accept)
		h := answer.Header()
		if got := h.Get("Content-Type"); got != c.want {
			t.Errorf("%q with Accept %q: got %s, want %s", c.query, c.accept, got, c.want)
		}
		if h.Get("Cache-Control") != "no-store" || h.Get("Vary") != "Accept" {
			t.Errorf("%q: got Cache-Control %q, Vary %q", c.query, h.Get("Cache-Control"), h.Get("Vary"))
		}
	}
	w.invalid(target+"?format=xml", "format must be json, tlog-proof or cose")
	w.invalid(target+"?verify=1&verify=1", `Query parameter \"verify\" is given more than once`)
}

func TestTlogProof(t *testing.T) {
	w := newWorld(t)
	receipts := w.append(&w.red, id.DiscloseRecord, names("e", 5)...)
	p, err := tlog.ParseProof(w.get("/v1/public/orgs/red/verify/e-3?format=tlog-proof").Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if c, err := p.Check(receipts[3].EventHash, w.state(&w.red).VerifierKey()); err != nil || c.Size != 5 || p.Index != 3 {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestBundleNotFound(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, "one")
	w.append(&w.blue, id.DiscloseRecord, "two")
	for _, target := range []string{
		"/v1/public/orgs/red/verify/two", "/v1/public/orgs/blue/verify/one", "/v1/public/orgs/green/verify/one",
		"/v1/public/orgs/RED/verify/one", "/v1/public/orgs/red/verify/ONE", "/v1/public/orgs/red/verify/a%2Fb",
		"/v1/public/orgs/red/verify/%00", "/v1/public/orgs/red/verify/one/", "/v1/public/orgs/red/verify/", "/v1/public/orgs/red/verify",
		"/v1/public/orgs/green/verify/one?format=tlog-proof", "/v1/public/orgs/red/verify/two?format=tlog-proof",
		"/v1/public/orgs/green/verify/one?format=cose", "/v1/public/orgs/red/verify/two?format=cose", "/v1/public/orgs/blue/verify/one?format=cose",
		"/v1/public/orgs/red/verify/%00?format=cose",
	} {
		w.missing(target)
	}
	if b := read[verify.Bundle](w, "/v1/public/orgs/red/verify/%6Fne"); b.EventID != "one" {
		t.Errorf("an escaped event id: got %s, want one", b.EventID)
	}
}

// Events that are applied but not durable yet are not visible.
func TestNothingIsShownBeforeItIsDurable(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, "one")
	release := w.store.Hold()
	landed := make(chan struct{})
	go func() {
		defer close(landed)
		w.append(&w.red, id.DiscloseRecord, "two")
	}()
	for applied := false; !applied; time.Sleep(time.Millisecond) {
		h, err := w.store.Head(t.Context(), w.red.tenant)
		applied = err == nil && h.Size == 2
	}
	prefix := "/o/" + w.red.id.String()
	w.missing("/v1/public/orgs/red/verify/two")
	w.missing(prefix + "/tile/0/000.p/2")
	w.missing(prefix + "/tile/entries/000.p/2")
	w.missing(redConsistency + "?from=0&to=2")
	w.missing(redInclusion + "?event_id=two")
	if h := read[verify.Head](w, "/v1/public/orgs/red/transparency/head"); h.TreeSize != 1 {
		t.Errorf("got a head of size %d, want 1", h.TreeSize)
	}
	release()
	<-landed
	w.get("/v1/public/orgs/red/verify/two")
	w.get(prefix + "/tile/0/000.p/2")
}

// Every response comes from one state, even if events are appended in the meantime.
func TestBundlesWhileTheLogGrows(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, "zero", "one")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, name := range names("e", 100) {
			w.append(&w.red, id.DiscloseRecord, name)
		}
	}()
	for growing := true; growing; {
		select {
		case <-done:
			growing = false
		default:
		}
		if b := read[verify.Bundle](w, "/v1/public/orgs/red/verify/one?verify=1"); !b.Verification.OK {
			t.Fatalf("at size %d: %v", b.Verification.TreeSize, b.Verification.Errors)
		}
		h := read[verify.Head](w, "/v1/public/orgs/red/transparency/head")
		if _, err := verify.CheckHead(h, w.state(&w.red).VerifierKey()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOperatorStatement(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, "one")
	const target = "/v1/public/orgs/red/verify/one"
	got := read[map[string]any](w, target)["operator_statement"]
	if want := `{"fault":null,"reverified_at":null,"reverified_to":0}`; string(mustJSON(t, got)) != want {
		t.Errorf("before any pass: got %s, want %s", mustJSON(t, got), want)
	}
	w.ledgers.Close()
	w.open(t.TempDir())
	if o := read[verify.Bundle](w, target).OperatorStatement; o.Fault == nil || *o.Fault != string(log.ReadOnly) {
		t.Errorf("without an anchor: got %v, want read_only", o.Fault)
	}
}

// A revocation may claim an index from which a key is compromised. Events from there on are served with that claim,
// earlier events are not, and the other organization is not affected.
func TestKeyClaim(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, "before", "after")
	w.append(&w.red, id.DiscloseCommitment, "hidden")
	w.append(&w.blue, id.DiscloseRecord, "before", "after")
	from := id.Index(1)
	_, err := w.agents.RevokeKey(t.Context(), w.red.tenant, "acc", w.red.agent.Agent, w.red.agent.Key, agent.Revocation{CompromisedFrom: &from})
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{
		"red/verify/before": "", "red/verify/after": verify.KeyCompromised, "red/verify/hidden": "",
		"blue/verify/before": "", "blue/verify/after": "",
	} {
		if got := read[verify.Bundle](w, "/v1/public/orgs/"+target).OperatorStatement.KeyClaim; got != want {
			t.Errorf("%s: got key claim %q, want %q", target, got, want)
		}
	}
}

// forgetful returns no agents.
type forgetful struct{ publicapi.Agents }

func (forgetful) CompromisedFrom(context.Context, *log.State, id.Agent, id.Key) (id.Index, error) {
	return 0, fault.New(fault.NotFound, "Not found")
}

// An event is served even if its agent is unknown, as after moving only the ledger.
func TestBundleOfUnknownAgent(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, "one")
	w.serve(forgetful{w.agents})
	if b := read[verify.Bundle](w, "/v1/public/orgs/red/verify/one?verify=1"); !b.Verification.OK || b.OperatorStatement.KeyClaim != "" {
		t.Errorf("got %+v, %+v", b.Verification, b.OperatorStatement)
	}
}
