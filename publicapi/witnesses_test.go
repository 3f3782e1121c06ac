package publicapi_test

import (
	"bytes"
	"context"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/operate/witness"
	"github.com/agentledger/agentledger/internal/test/witnesstest"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
	"github.com/agentledger/agentledger/verify"
)

// witnessed is a world whose service requires two witnesses.
type witnessed struct {
	*world
	x, y   *witnesstest.Witness
	policy string // what the service was given
	ahead  time.Duration
	change func(*witness.Options)
}

func newWitnessed(t *testing.T) *witnessed {
	w := &witnessed{world: newWorld(t), x: witnesstest.New(t, "x.example"), y: witnesstest.New(t, "y.example")}
	for _, o := range []*owner{&w.red, &w.blue} {
		w.x.AddLog(w.state(o).VerifierKey())
		w.y.AddLog(w.state(o).VerifierKey())
	}
	w.policy = w.x.PolicyLine("x") + w.y.PolicyLine("y") + "group both all x y\nquorum both\n"
	return w
}

// cosign sends the checkpoints of all ledgers to the witnesses until is reports true.
func (w *witnessed) cosign(is func() bool) {
	w.Helper()
	policy, err := trust.Parse([]byte(w.policy))
	if err != nil {
		w.Fatal(err)
	}
	o := witness.Options{
		Store: w.store, Ledgers: w.ledgers, Organizations: w.orgs, Service: policy, Interval: time.Millisecond, MaxLag: time.Minute,
		Client: egress.New(egress.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}),
		Clock:  func() time.Time { return time.Now().Add(w.ahead) },
	}
	if w.change != nil {
		w.change(&o)
	}
	service := witness.New(o)
	w.witnesses = service
	w.serve(w.agents)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { service.Run(ctx) })
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatal("not cosigned in time")
		}
	}
	cancel()
	running.Wait()
}

// by returns the checkpoint of a note and how many of the two witnesses have cosigned it.
func (w *witnessed) by(o *owner, note []byte) (c tlog.Checkpoint, n int) {
	w.Helper()
	c, err := tlog.OpenCheckpoint(note, w.state(o).VerifierKey())
	if err != nil {
		w.Fatal(err)
	}
	parsed, err := tlog.ParseNote(note)
	if err != nil {
		w.Fatal(err)
	}
	for _, x := range []*witnesstest.Witness{w.x, w.y} {
		if _, err := x.Signer.Key().Cosigned(parsed); err == nil {
			n++
		}
	}
	return c, n
}

// newest returns the published checkpoint. While witnesses are being called, two reads may differ.
func (w *witnessed) newest(o *owner) []byte {
	w.Helper()
	return w.get("/o/" + o.id.String() + "/checkpoint").Body.Bytes()
}

// checkpoints returns the responses of both URLs of a checkpoint, which must be the same.
func (w *witnessed) checkpoint(o *owner, query string) []byte {
	w.Helper()
	bySlug := w.get("/v1/public/orgs/" + string(o.slug) + "/transparency/checkpoint" + query).Body.Bytes()
	if byID := w.get("/o/" + o.id.String() + "/checkpoint" + query).Body.Bytes(); !bytes.Equal(bySlug, byID) {
		w.Errorf("%s: got %q and %q", query, bySlug, byID)
	}
	return bySlug
}

func (w *witnessed) shows(o *owner, query string, size id.Index, by int) {
	w.Helper()
	c, n := w.by(o, w.checkpoint(o, query))
	if c.Size != size || n != by {
		w.Errorf("%s of %s: got size %d by %d, want %d by %d", query, o.slug, c.Size, n, size, by)
	}
}

const notCosigned = `{"error":"The newest checkpoint does not have its quorum of cosignatures yet","code":"not_cosigned"`

func (w *witnessed) refusesCosigned(o *owner) {
	w.Helper()
	for _, target := range []string{"/v1/public/orgs/" + string(o.slug) + "/transparency/checkpoint?cosigned=1", "/o/" + o.id.String() + "/checkpoint?cosigned=1"} {
		a := w.do(http.MethodGet, target)
		if a.Code != http.StatusServiceUnavailable || !strings.HasPrefix(a.Body.String(), notCosigned) || a.Header().Get("Retry-After") == "" {
			w.Errorf("%s: got %d %s, Retry-After %q", target, a.Code, a.Body, a.Header().Get("Retry-After"))
		}
		w.public(target, a)
	}
}

// One checkpoint has a quorum, a later one has one cosignature, and the latest none. Each target serves the right one.
func TestWhatIsShown(t *testing.T) {
	w := newWitnessed(t)
	w.append(&w.red, id.DiscloseFull, "one", "two")
	w.append(&w.blue, id.DiscloseFull, "one")
	w.cosign(func() bool {
		_, red := w.by(&w.red, w.newest(&w.red))
		_, blue := w.by(&w.blue, w.newest(&w.blue))
		return red == 2 && blue == 2
	})
	w.shows(&w.red, "?cosigned=1", 2, 2)
	w.shows(&w.red, "?cosigned=0", 2, 2)

	w.y.AnswerWith(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusTooManyRequests) })
	w.append(&w.red, id.DiscloseFull, "three")
	w.cosign(func() bool { _, n := w.by(&w.red, w.newest(&w.red)); return n == 1 })
	w.shows(&w.red, "", 3, 1)
	w.shows(&w.red, "?cosigned=1", 2, 2)

	w.append(&w.red, id.DiscloseFull, "four") // nobody is asked any more
	w.shows(&w.red, "", 4, 0)
	w.shows(&w.red, "?cosigned=1", 2, 2)
	w.shows(&w.blue, "", 1, 2)

	head := read[verify.Head](w.world, "/v1/public/orgs/red/transparency/head")
	if c, n := w.by(&w.red, []byte(head.Checkpoint)); c.Size != 4 || n != 0 || head.TreeSize != 4 {
		t.Errorf("head: got %+v", head)
	}
	if blue := read[verify.Head](w.world, "/v1/public/orgs/blue/transparency/head"); !strings.Contains(blue.Checkpoint, "x.example") {
		t.Errorf("head of blue: got %+v", blue)
	}

	for name, want := range map[string]struct {
		size id.Index
		by   int
	}{"one": {2, 2}, "two": {2, 2}, "three": {4, 0}, "four": {4, 0}} {
		w.bundleOf(name, want.size, want.by)
	}
	for _, target := range []string{"/v1/public/orgs/red/transparency/checkpoint", "/o/" + w.red.id.String() + "/checkpoint"} {
		w.invalid(target+"?cosigned=2", "cosigned must be 1 or 0")
		w.invalid(target+"?cosigned=1&cosigned=1", `Query parameter \"cosigned\" is given more than once`)
	}
}

// Bundles are still proved under a checkpoint that was cosigned before a new log key, or while both keys signed. They
// name a key that signed it: the current key, if it did.
func TestCosignedBeforeRotation(t *testing.T) {
	for name, overlap := range map[string]bool{"before": false, "while both sign": true} {
		t.Run(name, func(t *testing.T) { cosignedBeforeRotation(t, overlap) })
	}
}

func cosignedBeforeRotation(t *testing.T, overlap bool) {
	w := newWitnessed(t)
	cosign := func() { w.cosign(func() bool { _, n := w.by(&w.red, w.newest(&w.red)); return n == 2 }) }
	w.append(&w.red, id.DiscloseFull, "one", "two")
	cosign()
	before := w.state(&w.red).VerifierKey()
	w.rekey(&w.red, "rotated", w.ledgers.RotateLogKey)
	if overlap {
		cosign()
	}
	w.rekey(&w.red, "retired", w.ledgers.RetireLogKey)
	w.append(&w.red, id.DiscloseFull, "later")
	now := w.state(&w.red).VerifierKey()
	if now == before {
		t.Fatal("the key is the old one")
	}
	type shown struct {
		size id.Index
		key  tlog.VerifierKey
	}
	two := shown{2, before}
	if overlap {
		two = shown{3, now}
	}
	for name, c := range map[string]shown{"two": two, "later": {5, now}} {
		b := read[verify.Bundle](w.world, "/v1/public/orgs/red/verify/"+name+"?verify=1")
		if !b.Verification.OK || b.Inclusion.TreeSize != c.size || b.LogKey != c.key.String() {
			t.Errorf("%s: got size %d under %s, %v", name, b.Inclusion.TreeSize, b.LogKey, b.Verification.Errors)
		}
		if r := verify.Check(&b, verify.Options{Key: &c.key}); !r.OK {
			t.Errorf("%s: %v", name, r.Errors)
		}
		if r := verify.Check(&b, verify.Options{Key: &before}); r.OK != (name == "two") {
			t.Errorf("%s, the older key pinned: got %v, %v", name, r.OK, r.Errors)
		}
		if both := name == "two" && overlap; both != (len(b.LogKeys) == 2) || len(b.LogKeys) != 0 && !both {
			t.Errorf("%s: got log keys %q", name, b.LogKeys)
		}
	}
	w.policyOpens(overlap, before, now)
}

// policyOpens checks that the policy contains exactly the keys of the published checkpoints: the previous key only
// while bundles need it.
func (w *witnessed) policyOpens(overlap bool, before, now tlog.VerifierKey) {
	w.Helper()
	policy, err := trust.Parse(w.get("/v1/public/orgs/red/transparency/policy").Body.Bytes())
	if err != nil {
		w.Fatal(err)
	}
	keys := []tlog.VerifierKey{before, now}
	for i, l := range policy.Logs {
		if len(policy.Logs) != 2 || l.Key != keys[i] || l.URL != policy.Logs[0].URL {
			w.Errorf("overlap %v: log %d of %d: got %+v", overlap, i, len(policy.Logs), l)
		}
	}
	b := read[verify.Bundle](w.world, "/v1/public/orgs/red/verify/two")
	if _, err := policy.Open([]byte(b.Checkpoint)); err != nil {
		w.Errorf("overlap %v: the bundle's checkpoint: %v", overlap, err)
	}
	w.x.AddLogKey(now)
	w.y.AddLogKey(now)
	w.cosign(func() bool { c, n := w.by(&w.red, w.newest(&w.red)); return c.Size == 5 && n == 2 })
	if policy, err = trust.Parse(w.get("/v1/public/orgs/red/transparency/policy").Body.Bytes()); err != nil || len(policy.Logs) != 1 || policy.Logs[0].Key != now {
		w.Errorf("cosigned under the new key alone: got %+v, %v", policy, err)
	}
}

// bundleOf verifies a bundle of Red and its tlog-proof with the published policy.
func (w *witnessed) bundleOf(name string, size id.Index, by int) {
	w.Helper()
	target := "/v1/public/orgs/red/verify/" + name
	b := read[verify.Bundle](w.world, target+"?verify=1")
	policy, err := trust.Parse(w.get("/v1/public/orgs/red/transparency/policy").Body.Bytes())
	if err != nil {
		w.Fatal(err)
	}
	if !b.Verification.OK || b.Verification.TreeSize != size || len(b.Verification.Cosignatures) != by || b.Inclusion.TreeSize != size {
		w.Errorf("%s: got %+v", name, b.Verification)
	}
	for _, unchecked := range b.Verification.Unchecked {
		if strings.HasPrefix(unchecked, "checkpoint") {
			w.Errorf("%s: unchecked %s", name, unchecked)
		}
	}
	opened, err := policy.Open([]byte(b.Checkpoint))
	if opened.Checkpoint.Size != size || len(opened.Cosignatures) != by || (err == nil) != (by == 2) {
		w.Errorf("%s by the policy: got %+v, %v", name, opened, err)
	}
	proof, err := tlog.ParseProof(w.get(target + "?format=tlog-proof").Body.Bytes())
	if err != nil {
		w.Fatal(err)
	}
	if c, err := proof.Check(b.EventHash, w.state(&w.red).VerifierKey()); err != nil || c.Size != size || !bytes.Equal(proof.Checkpoint, []byte(b.Checkpoint)) {
		w.Errorf("%s: tlog-proof: got %+v, %v", name, c, err)
	}
	receipt, err := tlog.ParseReceipt(w.get(target + "?format=cose").Body.Bytes())
	if err != nil {
		w.Fatal(err)
	}
	want := opened.Checkpoint
	if want.Size < tlog.MinReceiptTree {
		want = w.state(&w.red).Shown()
	}
	if c, err := receipt.Check(b.EventHash, w.state(&w.red).VerifierKey()); err != nil || c != want {
		w.Errorf("%s: receipt: got %+v, %v, want %+v", name, c, err, want)
	}
}

func TestPolicyNamesTheWitnesses(t *testing.T) {
	w := newWitnessed(t)
	w.cosign(func() bool { return true })
	log := "log " + w.state(&w.red).VerifierKey().String() + " " + publicURL + "/o/" + w.red.id.String() + "\n"
	want := log + "witness x " + w.x.Signer.Key().String() + "\nwitness y " + w.y.Signer.Key().String() + "\ngroup both all x y\nquorum both\n"
	if got := w.get("/v1/public/orgs/red/transparency/policy").Body.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Requests for a cosigned checkpoint fail if an event has lacked its quorum for too long. The latest checkpoint and
// everything else are still served.
func TestFailingClosed(t *testing.T) {
	w := newWitnessed(t)
	w.change = func(o *witness.Options) { o.FailClosed = true }
	w.append(&w.red, id.DiscloseFull, "one")
	down := func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusTooManyRequests) }
	w.y.AnswerWith(down)
	w.cosign(func() bool { _, n := w.by(&w.red, w.newest(&w.red)); return n == 1 })
	w.refusesCosigned(&w.red) // there never was a quorum
	w.shows(&w.red, "", 1, 1)

	w.y.AnswerWith(nil)
	w.cosign(func() bool { _, n := w.by(&w.red, w.newest(&w.red)); return n == 2 })
	w.shows(&w.red, "?cosigned=1", 1, 2)
	w.y.AnswerWith(down)
	w.now = time.Now()
	w.append(&w.red, id.DiscloseFull, "two")
	w.cosign(func() bool { return true })
	w.shows(&w.red, "?cosigned=1", 1, 2) // it may be late for a minute
	w.ahead = 50 * time.Second
	w.shows(&w.red, "?cosigned=1", 1, 2)
	w.ahead = 70 * time.Second
	w.refusesCosigned(&w.red)
	w.now = w.now.Add(65 * time.Second) // a newer event makes the old one no younger
	w.append(&w.red, id.DiscloseFull, "three")
	w.refusesCosigned(&w.red)
	if c, _ := w.by(&w.red, w.newest(&w.red)); c.Size != 3 {
		t.Errorf("the newest: got %+v", c)
	}
	w.bundleOf("one", 1, 2)
	w.ahead = 0

	w.change = func(o *witness.Options) { o.FailClosed, o.MaxLag = true, 0 }
	w.append(&w.red, id.DiscloseFull, "four")
	w.cosign(func() bool { return true })
	w.refusesCosigned(&w.red)
	w.y.AnswerWith(nil)
	w.cosign(func() bool { _, n := w.by(&w.red, w.newest(&w.red)); return n == 2 })
	w.shows(&w.red, "?cosigned=1", 4, 2)
}

// A witness knows a later state than a restored ledger: the ledger is frozen, also in public responses, and the other
// organization's ledger is not.
func TestRestoredLedgerIsCaughtByAWitness(t *testing.T) {
	w := newWitnessed(t)
	w.append(&w.red, id.DiscloseFull, "one")
	w.append(&w.blue, id.DiscloseFull, "one")
	older := w.store.Reopen()
	w.append(&w.red, id.DiscloseFull, "two")
	w.cosign(func() bool {
		_, red := w.by(&w.red, w.newest(&w.red))
		_, blue := w.by(&w.blue, w.newest(&w.blue))
		return red == 2 && blue == 2
	})
	if err := w.ledgers.Close(); err != nil {
		t.Fatal(err)
	}
	w.store, w.witnesses = older, nil
	w.open(t.TempDir()) // the anchors are lost too
	for _, o := range []*owner{&w.red, &w.blue} {
		if err := w.ledgers.Adopt(t.Context(), o.tenant, w.state(o).Checkpoint()); err != nil {
			t.Fatal(err)
		}
	}
	w.append(&w.red, id.DiscloseFull, "another-second")
	w.append(&w.red, id.DiscloseFull, "another-third")
	w.cosign(func() bool { return w.state(&w.red).Fault().Level == "frozen" })
	if head := read[verify.Head](w.world, "/v1/public/orgs/red/transparency/head"); head.Fault != "frozen" {
		t.Errorf("got %+v", head)
	}
	if fault := w.state(&w.blue).Fault(); fault.Level != "" {
		t.Errorf("blue: got %+v", fault)
	}
	w.append(&w.blue, id.DiscloseFull, "two")
}
