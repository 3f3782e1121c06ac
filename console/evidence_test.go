package console_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify/pack"
)

// checkPack verifies a pack with the organization's log key.
func (w *world) checkPack(tenant id.Tenant, text string) pack.Report {
	w.t.Helper()
	key := w.State(w.t, tenant).VerifierKey()
	r, err := pack.Check(strings.NewReader(text), int64(len(text)), pack.Options{
		OpenCheckpoint: func(note []byte) (tlog.Checkpoint, error) { return tlog.OpenCheckpoint(note, key) }})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// sendOwn appends an event of the organization's first agent.
func (w *world) sendOwn(tenant id.Tenant, name string, more map[string]any) id.Event {
	w.t.Helper()
	members := map[string]any{"agent_id": w.first[tenant].Agent, "key_id": w.first[tenant].Key}
	maps.Copy(members, more)
	w.sendEvent(tenant, name, members)
	return id.Event(name)
}

// A role that may read payloads gets a pack of its own organization, and the ledger records the export.
func TestEvidencePack(t *testing.T) {
	w := newWorld(t)
	a := w.ask(red)
	secret := w.sendOwn(red, "evt-secret", nil)
	before := w.State(t, red).Size()
	g := w.do(w.request("GET", "/evidence.zip?envelopes=1", "", as("red-auditor")))
	if g.status != http.StatusOK || g.header.Get("Content-Type") != "application/zip" {
		t.Fatalf("got %d %s", g.status, g.text)
	}
	r := w.checkPack(red, g.text)
	if r.End != before || r.Shown != uint64(before) || r.Envelopes != r.Shown || r.Withheld != 0 || r.Approvals != 1 {
		t.Errorf("got %+v", r)
	}
	for _, want := range []string{string(secret), string(a.ID)} {
		if !strings.Contains(g.text, want) {
			t.Errorf("the pack does not have %s", want)
		}
	}
	statements := w.Audit(t, red)
	if last := statements[len(statements)-1]; last.Kind != pack.ExportKind || !strings.Contains(last.Payload, r.ManifestSHA256.String()) || last.Principal != "acc_red-auditor" {
		t.Errorf("got %+v, want the digest of the manifest", last)
	}
	other := w.do(w.request("GET", "/evidence.zip?envelopes=1", "", as("blue-owner")))
	if b := w.checkPack(blue, other.text); strings.Contains(other.text, string(secret)) || b.Origin == r.Origin {
		t.Errorf("blue got %+v", b)
	}
}

// stalled is a client that accepts no byte until it is released.
type stalled struct {
	*httptest.ResponseRecorder
	waits    chan struct{} // receives once at the first byte
	released chan struct{}
	once     sync.Once
}

func (s *stalled) Write(b []byte) (int, error) {
	s.once.Do(func() { s.waits <- struct{}{} })
	<-s.released
	return s.ResponseRecorder.Write(b)
}

// An organization can run one export at a time. Another organization can still export.
func TestOneEvidencePackAtATime(t *testing.T) {
	w := newWorld(t)
	w.sendOwn(red, "evt-1", nil)
	slow := &stalled{ResponseRecorder: httptest.NewRecorder(), waits: make(chan struct{}, 1), released: make(chan struct{})}
	var done sync.WaitGroup
	done.Go(func() { w.handler.ServeHTTP(slow, w.request("GET", "/evidence.zip", "", as("red-owner"))) })
	<-slow.waits
	if g := w.do(w.request("GET", "/evidence.zip", "", as("red-admin"))); g.status != 429 || g.header.Get("Retry-After") == "" {
		t.Errorf("a second export: got %d %s", g.status, g.text)
	}
	w.checkPack(blue, w.do(w.request("GET", "/evidence.zip", "", as("blue-owner"))).text)
	close(slow.released)
	done.Wait()
	w.checkPack(red, slow.Body.String())
	w.checkPack(red, w.do(w.request("GET", "/evidence.zip", "", as("red-admin"))).text)
}

func TestEvidenceRequestsAreChecked(t *testing.T) {
	w := newWorld(t)
	w.sendOwn(red, "evt-1", nil)
	for query, want := range map[string]int{
		"?from=0&to=1": 200, "?from=2026-01-01T00:00:00Z&to=2027-01-01T00:00:00Z": 200, "?to=1000": 200, "?from=1": 200,
		"?from=2030-01-01T00:00:00Z": 200, "?tool=acme.**&trace_id=trc&envelopes=1": 200,
		"?from=1000": 422, "?from=1&to=0": 422, "?from=soon": 422, "?to=-1": 422, "?envelopes=2": 422, "?tool=**.a": 422,
		"?agent_id=a%20b": 422, "?trace_id=a%20b": 422, "?limit=1": 422, "?envelopes=1&columns=amount,order.id": 200, "?columns=amount": 422,
		"?envelopes=1&coverage=1&tool=acme.**": 200, "?coverage=1": 422, "?envelopes=1&coverage=2": 422,
		"?envelopes=1&columns=a,a": 422, "?envelopes=1&columns=a..b": 422, "?envelopes=1&columns=a,b,c,d,e,f,g,h,i": 422, "?q=a": 422, "?from=0&from=1": 422,
		"?on_behalf_of=u1": 200, "?on_behalf_of=u1&issuer=https://a.example&envelopes=1": 200, "?issuer=https://a.example": 422,
	} {
		g := w.do(w.request("GET", "/evidence.zip"+query, "", as("red-owner")))
		if g.status != want {
			t.Errorf("%s: got %d %.200s, want %d", query, g.status, g.text, want)
		} else if want == 200 {
			w.checkPack(red, g.text)
		}
	}
}
