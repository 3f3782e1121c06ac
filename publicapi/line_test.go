package publicapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/transfer"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// succeed replaces the frozen log of Red with a new one.
func (w *world) succeed() {
	w.Helper()
	if err := w.ledgers.Close(); err != nil {
		w.Fatal(err)
	}
	anchors, err := anchor.Open(w.anchors)
	if err != nil {
		w.Fatal(err)
	}
	s := transfer.Succession{
		Place:        transfer.Place{Store: w.store, Keyring: w.keyring, Anchors: anchors},
		Organization: "red", Reason: "a test", Clock: w.clock,
	}
	if _, err := s.Run(w.Context()); err != nil {
		w.Fatal(err)
	}
	w.open(w.anchors)
	if w.red.tenant, err = w.orgs.BySlug(w.Context(), "red"); err != nil {
		w.Fatal(err)
	}
}

// lined returns a world in which Red's second log has succeeded the first one, which is frozen and complete: "one" and
// "two" are in the first log, "three" is in the second.
func lined(t *testing.T) (w *world, old, now tlog.VerifierKey) {
	w = newWorld(t)
	w.append(&w.red, id.DiscloseFull, "one", "two")
	w.append(&w.blue, id.DiscloseFull, "one")
	old = w.state(&w.red).VerifierKey()
	if err := w.ledgers.Freeze(t.Context(), w.red.tenant, "a test"); err != nil {
		t.Fatal(err)
	}
	w.succeed()
	w.append(&w.red, id.DiscloseFull, "three")
	return w, old, w.state(&w.red).VerifierKey()
}

// Each log of a line is served below its own prefix.
func TestTilesOfALine(t *testing.T) {
	w, old, now := lined(t)
	first, second := "/o/"+w.red.id.String(), "/o/"+w.red.id.String()+"/2"
	for prefix, key := range map[string]tlog.VerifierKey{first: old, second: now} {
		c, err := tlog.OpenCheckpoint(w.get(prefix+"/checkpoint").Body.Bytes(), key)
		if err != nil || c.Size != 2 || !strings.HasSuffix(string(c.Origin), prefix) {
			t.Errorf("%s: got %+v, %v", prefix, c, err)
		}
		tile, entries := prefix+"/tile/0/000.p/2", prefix+"/tile/entries/000.p/2"
		if got := w.get(tile).Body.Len(); got != 64 {
			t.Errorf("%s: got %d bytes", tile, got)
		}
		for _, target := range []string{prefix + "/checkpoint", tile, entries} {
			tag := w.get(target).Header().Get("ETag")
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				if got := w.ask(method, target, "If-None-Match: "+tag).Code; got != http.StatusNotModified {
					t.Errorf("%s %s: got %d", method, target, got)
				}
			}
			w.public(target, w.do(http.MethodOptions, target))
			w.missing(strings.Replace(target, prefix+"/", first+"/3/", 1))
		}
		w.invalid(prefix+"/checkpoint?cosigned=2", "cosigned must be 1 or 0")
		w.missing(prefix + "/tile/0/000.p/3")
		w.missing(prefix + "/tile/entries/000.p/3")
	}
	for _, number := range []string{"0", "1", "02", "99999999999999999999"} {
		w.missing(first + "/" + number + "/checkpoint")
	}
	w.missing("/o/" + w.blue.id.String() + "/2/checkpoint")
}

func TestSuccessor(t *testing.T) {
	w, _, now := lined(t)
	first := "/o/" + w.red.id.String()
	type answer struct {
		Origin           id.Origin
		LogKey           string `json:"log_key"`
		Record, Envelope string
	}
	got := read[answer](w, first+"/successor")
	e, err := w.ledgers.Event(t.Context(), w.state(&w.red), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	said, err := verify.ReadSuccession(got.Origin, log.EntryOf(e), []byte(got.Record), []byte(got.Envelope))
	if err != nil || got.Origin != w.red.origin()+"/2" || got.LogKey != now.String() {
		t.Errorf("got %+v, %v", got, err)
	}
	last, err := said.Last()
	if err != nil || said.Predecessor != w.red.origin() || last.Size != 2 || said.Reason != "a test" {
		t.Errorf("got %+v, %+v, %v", said, last, err)
	}
	stated, err := w.orgs.RotateLogKey(t.Context(), w.red.tenant, sysevent.Operator)
	if err != nil {
		t.Fatal(err)
	}
	key := first + "/2/keys/" + stated.Verifier.Hash().String()
	if b := read[verify.Bundle](w, key); b.Origin != got.Origin || w.do(http.MethodHead, key).Code != http.StatusOK {
		t.Errorf("the statement of a key: got %+v", b)
	}
	w.missing(first + "/keys/" + stated.Verifier.Hash().String())
	w.missing(first + "/2/successor")
	w.missing("/o/" + w.blue.id.String() + "/successor")
	// The second log ends, too.
	if err := w.ledgers.Freeze(t.Context(), w.red.tenant, "a test"); err != nil {
		t.Fatal(err)
	}
	w.missing(first + "/2/successor")
	w.succeed()
	for target, want := range map[string]id.Origin{first + "/successor": w.red.origin() + "/2", first + "/2/successor": w.red.origin() + "/3"} {
		if got := read[answer](w, target); got.Origin != want {
			t.Errorf("%s: got %s, want %s", target, got.Origin, want)
		}
		tag := w.get(target).Header().Get("ETag")
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			if got := w.ask(method, target, "If-None-Match: "+tag).Code; got != http.StatusNotModified {
				t.Errorf("%s %s: got %d", method, target, got)
			}
		}
		w.public(target, w.do(http.MethodOptions, target))
	}
	if got := read[verify.Head](w, "/v1/public/orgs/red/transparency/head"); got.Origin != w.red.origin()+"/3" || got.Predecessor != w.red.origin()+"/2" {
		t.Errorf("got %+v", got)
	}
}

// Events are found in every log of the line, and their bundles are proved with the key of their log only.
func TestBundlesOfALine(t *testing.T) {
	w, old, now := lined(t)
	for name, key := range map[string]tlog.VerifierKey{"one": old, "two": old, "three": now} {
		target := "/v1/public/orgs/red/verify/" + name
		b, err := verify.ParseBundle(w.get(target + "?verify=1&directory=1").Body.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if r := verify.Check(b, verify.Options{Key: &key}); !r.OK || b.LogKey != key.String() || string(b.Origin) != key.Name() || !b.Verification.OK {
			t.Errorf("%s: got %+v of %s", name, r, b.Origin)
		}
		w.get(target + "?origin=" + key.Name())
		w.get(target + "?format=tlog-proof")
		receipt, err := tlog.ParseReceipt(w.get(target + "?format=cose").Body.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := receipt.Check(b.EventHash, key); err != nil {
			t.Errorf("%s: receipt: %v", name, err)
		}
		other := map[string]string{old.Name(): now.Name(), now.Name(): old.Name()}[key.Name()]
		w.missing(target + "?origin=" + other)
		w.missing(target + "?format=cose&origin=" + other)
		w.missing("/v1/public/orgs/blue/verify/" + name + "?origin=" + key.Name())
	}
	w.missing("/v1/public/orgs/red/verify/four")
	w.missing("/v1/public/orgs/red/verify/one?origin=elsewhere/o/x")
	w.get("/v1/public/agents/helper-red/did")
}

// Requests with the organization's slug refer to the newest log, unless they name another one.
func TestTransparencyOfALine(t *testing.T) {
	w, old, now := lined(t)
	const base = "/v1/public/orgs/red/transparency/"
	for _, c := range []struct {
		query  string
		key    tlog.VerifierKey
		before id.Origin
		after  id.Origin
		fault  string
	}{
		{"", now, w.red.origin(), "", ""},
		{"origin=" + now.Name(), now, w.red.origin(), "", ""},
		{"origin=" + old.Name(), old, "", w.red.origin() + "/2", "frozen"},
	} {
		h := read[verify.Head](w, base+"head?"+c.query)
		if _, err := verify.CheckHead(h, c.key); err != nil || h.Predecessor != c.before || h.Successor != c.after || h.Fault != c.fault {
			t.Errorf("%q: got %+v, %v", c.query, h, err)
		}
		if _, err := tlog.OpenCheckpoint(w.get(base+"checkpoint?"+c.query).Body.Bytes(), c.key); err != nil {
			t.Errorf("%q: %v", c.query, err)
		}
		keys, err := verify.ParseKeys(w.get(base + "keys?" + c.query).Body.Bytes())
		if err != nil || len(keys) != 1 || keys[0].Key != c.key {
			t.Errorf("%q: got %v, %v", c.query, keys, err)
		}
		if got := w.get(base + "policy?" + c.query).Body.String(); !strings.Contains(got, "log "+c.key.String()+" "+publicURL+strings.TrimPrefix(c.key.Name(), "ledger.example:8443")+"\n") {
			t.Errorf("%q: got policy %s", c.query, got)
		}
		proof := read[verify.InclusionAnswer](w, base+"inclusion?log_index=0&"+c.query)
		if err := tlog.CheckInclusion(0, h.TreeSize, proof.LeafHash, proof.Hashes, h.RootHash); err != nil {
			t.Errorf("%q: %v", c.query, err)
		}
		consistent := read[verify.Consistency](w, base+"consistency?from=1&"+c.query)
		if err := tlog.CheckConsistency(1, h.TreeSize, consistent.FromRoot, h.RootHash, consistent.Hashes); err != nil {
			t.Errorf("%q: %v", c.query, err)
		}
	}
	w.missing(base + "inclusion?event_id=one")
	w.get(base + "inclusion?event_id=one&origin=" + old.Name())
	for _, route := range []string{"head", "checkpoint", "keys", "policy", "inclusion?log_index=0", "consistency?from=0"} {
		join := "?"
		if strings.Contains(route, "?") {
			join = "&"
		}
		w.missing(base + route + join + "origin=" + string(w.red.origin()) + "/3")
		w.missing("/v1/public/orgs/blue/transparency/" + route + join + "origin=" + now.Name())
		w.invalid(base+route+join+"origin=a&origin=b", `Query parameter \"origin\" is given more than once`)
	}
}

// A frozen log that has lost events reports it, and its successor is not affected.
func TestSuccessorOfARolledBackLog(t *testing.T) {
	w, note := rolledBack(t)
	w.succeed()
	w.append(&w.red, id.DiscloseFull, "three")
	w.get("/v1/public/orgs/red/verify/three")
	w.missing("/v1/public/orgs/red/verify/two")
	for _, target := range []string{"/v1/public/orgs/red/verify/one", "/v1/public/orgs/red/verify/one?origin=" + string(w.red.origin()), "/o/" + w.red.id.String() + "/tile/0/000.p/1"} {
		w.failed(target, http.StatusServiceUnavailable, `{"error":"The organization's ledger is frozen","code":"frozen"`)
	}
	if got := w.get("/o/" + w.red.id.String() + "/checkpoint").Body.String(); got != string(note) {
		t.Errorf("got %s, want %s", got, note)
	}
}
