package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
	"github.com/agentledger/agentledger/verify"
)

const spendingPolicy = `{"policy_id":"spending","name":"Spending","rules":[
	{"rule_id":"cap","tool":"acme.pay.*","decision":"deny","when":"payload.amount > 100","reason":"Too much"}],
	"tests":[{"name":"much","input":{"tool_name":"acme.pay.refund","payload":{"amount":101}},"expect":{"decision":"deny"}}]}`

// The whole way of a decision, on both engines: activation under load, then an auditor who replays the decisions.
func TestPolicyThroughTheService(t *testing.T) {
	t.Run("pebble", func(t *testing.T) { policyThroughTheService(t) })
	t.Run("postgres", func(t *testing.T) {
		s, err := pgtest.Start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Stop() })
		policyThroughTheService(t, "--storage", s.URL())
	})
}

func policyThroughTheService(t *testing.T, flags ...string) {
	p := startProcess(t, t.TempDir(), flags...)
	more := map[string]any{"disclosure": "full"}
	r, blue := newRefunder(t, p, p.found(t.Context(), "red", more)), newRefunder(t, p, p.found(t.Context(), "blue", more))
	if err := r.person.callConsole(t.Context(), "POST", "/policies", rawJSON(spendingPolicy), nil); err != nil {
		t.Fatal(err)
	}
	r.activate(t)
	sent := r.underLoad(t, func() {
		for i := range 10 {
			r.change(t, fmt.Sprintf(`{"rules":[{"rule_id":"cap","tool":"acme.pay.*","decision":"deny","when":"payload.amount > %d"}],"tests":[]}`, 100+i%2*900))
			r.activate(t)
		}
	})
	t.Logf("%d events", len(sent))
	versions := r.judged(t, sent)
	if len(versions) < 2 {
		t.Errorf("all events were judged by versions %v: no event was judged by another version", versions)
	}
	r.replays(t, sent[len(sent)-1])
	if d := blue.refund(t, 500); d.Decision != 0 || d.Sequence != 1 {
		t.Errorf("blue, which has no policy: got %+v", d)
	}
}

func (r *refunder) activate(t *testing.T) {
	t.Helper()
	if err := r.person.callConsole(t.Context(), "POST", "/policies/spending/activate", struct{}{}, nil); err != nil {
		t.Fatal(err)
	}
}

func (r *refunder) change(t *testing.T, patch string) {
	t.Helper()
	if err := r.person.callConsole(t.Context(), "PATCH", "/policies/spending", rawJSON(patch), nil); err != nil {
		t.Fatal(err)
	}
}

// refund sends an event.
func (r *refunder) refund(t *testing.T, amount float64) client.Result {
	t.Helper()
	envelope, err := r.signer.SignEvent(client.Event{ActionKind: "tool_call", Tool: "acme.pay.refund", Payload: map[string]any{"amount": amount}})
	if err != nil {
		t.Error(err)
		return client.Result{}
	}
	result, err := r.client.Send(t.Context(), envelope)
	if err != nil || result.Status != client.Created {
		t.Errorf("got %+v, %v", result, err)
	}
	return result
}

// underLoad sends refunds of 500 until change has returned, and returns the created events in the order of the ledger.
func (r *refunder) underLoad(t *testing.T, change func()) []client.Result {
	t.Helper()
	var over atomic.Bool
	var mu sync.Mutex
	var group sync.WaitGroup
	var sent []client.Result
	for range 6 {
		group.Go(func() {
			for range 400 {
				result := r.refund(t, 500)
				mu.Lock()
				sent = append(sent, result)
				mu.Unlock()
				if over.Load() || t.Failed() {
					return
				}
			}
		})
	}
	change()
	over.Store(true)
	group.Wait()
	slices.SortFunc(sent, func(a, b client.Result) int { return int(a.Sequence) - int(b.Sequence) })
	return sent
}

// judged checks that each event was judged by the version that was active at its position, and returns the versions
// that judged.
func (r *refunder) judged(t *testing.T, sent []client.Result) []uint64 {
	t.Helper()
	leaves := activations(sent)
	var versions []uint64
	for _, s := range sent {
		active, _ := slices.BinarySearch(leaves, s.Sequence) // earlier leaves
		said := r.record(t, s).Policy
		if said.PolicyVersion != uint64(active) {
			t.Fatalf("#%d was judged by version %d, while %d was active; activations: %v", s.Sequence, said.PolicyVersion, active, leaves)
		}
		want := id.Deny
		if active > 1 && active%2 == 1 { // whose limit is 1000
			want = id.Allow
		}
		if said.Effective != want {
			t.Errorf("#%d by version %d: got %s, want %s", s.Sequence, active, said.Effective, want)
		}
		if !slices.Contains(versions, said.PolicyVersion) {
			versions = append(versions, said.PolicyVersion)
		}
	}
	return versions
}

// activations returns the positions of ledger_policy_activated: of the entries that are not in sent, the first, and
// then every second one, after the entry of the archived version.
func activations(sent []client.Result) (leaves []uint64) {
	others := 0
	next := uint64(1)
	for _, s := range sent {
		for ; next < s.Sequence; next++ {
			if others%2 == 0 {
				leaves = append(leaves, next)
			}
			others++
		}
		next++
	}
	return leaves
}

func (r *refunder) record(t *testing.T, s client.Result) event.Record {
	t.Helper()
	b, err := verify.ParseBundle(r.bundle(t, s.EventID))
	if err != nil {
		t.Fatal(err)
	}
	record, err := event.ParseRecord([]byte(*b.Record))
	if err != nil {
		t.Fatal(err)
	}
	return record
}

func (r *refunder) bundle(t *testing.T, event id.Event) []byte {
	t.Helper()
	b, err := r.client.FetchBundle(t.Context(), r.org.Slug, event)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// replays runs policy replay on the bundle of an event: with the policy, with another one, and with none.
func (r *refunder) replays(t *testing.T, s client.Result) {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	var all map[string]jsontext.Value
	if err := r.person.callConsole(t.Context(), "GET", "/policies/spending", nil, &all); err != nil {
		t.Fatal(err)
	}
	policyText := fmt.Sprintf(`{"policy_id":"spending","name":%s,"version":%s,"default":%s,"rules":%s}`, all["name"], all["version"], all["default"], all["rules"])
	bundle, policy := write("bundle.json", r.bundle(t, s.EventID)), write("policy.json", []byte(policyText))
	asShown, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	shown := write("shown.json", asShown)
	other := write("other.json", []byte(strings.Replace(policyText, "100", "101", 1)))
	for _, tc := range []struct {
		args []string
		exit int
		want string
	}{
		{[]string{"--policy", policy, "--bundle", bundle}, 0, "same: " + string(s.EventID)},
		{[]string{"--policy", policy, "--bundle", bundle, "--json"}, 0, `"same": true`},
		{[]string{"--policy", shown, "--bundle", bundle}, 0, "same: " + string(s.EventID)},
		{[]string{"--policy", other, "--bundle", bundle}, 1, "policy.policy_digest: the record says"},
		{[]string{"--bundle", bundle}, 1, `policy.policy_id: the record says "spending", the documents say "none"`},
		{[]string{"--policy", policy}, 2, "either --bundle, or --record and --envelope are required"},
		{[]string{"--policy", bundle + ".gone", "--bundle", bundle}, 2, "no such file"},
		{[]string{"--policy", bundle, "--bundle", bundle}, 2, "is not a member that this server knows"},
	} {
		got, exit := command(t, "agentledger", append([]string{"policy", "replay"}, tc.args...)...)
		if exit != tc.exit || !strings.Contains(got, tc.want) {
			t.Errorf("replay %v: got %d, %s; want %d, %s", tc.args, exit, got, tc.exit, tc.want)
		}
	}
}
