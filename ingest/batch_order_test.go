package ingest_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/ingest"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/storage"
)

func TestBatchOfDuplicates(t *testing.T) {
	w := newWorld(t)
	const n = 1000
	w.mustCreate(&w.blue, "same", nil)
	same := w.envelope(&w.red, "same", nil)
	a := w.batch(&w.red, ndjson(slices.Repeat([]string{same}, n)...))
	w.expectLines(a, append([]string{"201 same"}, slices.Repeat([]string{"200 same"}, n-1)...)...)
	a = w.batch(&w.red, ndjson(slices.Repeat([]string{same}, n)...))
	w.expectLines(a, slices.Repeat([]string{"200 same"}, n)...)
	if got := w.sizes(); got != [2]id.Index{1, 1} {
		t.Errorf("got sizes %v", got)
	}
}

// A batch that is retried, for example after a lost answer, stores nothing twice. Lines that were rejected for a
// reason that no longer applies are accepted.
func TestBatchSentAgain(t *testing.T) {
	w := newWorld(t)
	limit := new(uint64)
	*limit = 3
	w.change(&w.red, org.Patch{EventsPerMonth: &limit})
	var bodies, first, second []string
	over := `{"status_code":429,"error":"Monthly event limit reached","code":"plan_limit"}`
	for i := range 5 {
		name := fmt.Sprint("evt-", i)
		bodies = append(bodies, w.envelope(&w.red, name, nil))
		if i < 3 {
			first, second = append(first, "201 "+name), append(second, "200 "+name)
		} else {
			first, second = append(first, over), append(second, "201 "+name)
		}
	}
	w.expectLines(w.batch(&w.red, ndjson(bodies...)), first...)
	w.change(&w.red, org.Patch{EventsPerMonth: new(*uint64)})
	w.expectLines(w.batch(&w.red, ndjson(bodies...)), second...)
	w.Audit(t, w.red.tenant)
}

// The cap is exact within a batch and across concurrent batches: the first lines are accepted.
func TestBatchCap(t *testing.T) {
	w := newWorld(t)
	const cap, n = 100, 64
	limit := new(uint64)
	*limit = cap
	w.change(&w.red, org.Patch{EventsPerMonth: &limit})
	before := w.sizes()
	answers := make([]batched, 4)
	var group sync.WaitGroup
	for i := range answers {
		var bodies []string
		for j := range n {
			bodies = append(bodies, w.envelope(&w.red, fmt.Sprintf("evt-%d-%d", i, j), nil))
		}
		group.Go(func() { answers[i] = w.batch(&w.red, ndjson(bodies...)) })
	}
	group.Wait()
	taken := 0
	for _, a := range answers {
		counts := a.statuses()
		taken += counts[201]
		if counts[201]+counts[429] != n {
			t.Errorf("got %v", counts)
		}
		if !slices.IsSortedFunc(a.lines, func(a, b string) int { return status(a) - status(b) }) {
			t.Error("a line was taken after one over the cap")
		}
	}
	before[0] += cap
	if after := w.sizes(); taken != cap || after != before {
		t.Errorf("%d taken, sizes %v, want %d and %v", taken, after, cap, before)
	}
}

// If the configuration changes, all lines that are not committed yet are judged again.
func TestBatchIsJudgedUnderTheStateItIsAppendedTo(t *testing.T) {
	for _, nth := range []int{0, 40, 99} {
		ledgers := &meddling{nth: nth}
		w := newWorld(t, func(o *ingest.Options) { ledgers.Ledgers, o.Ledgers = o.Ledgers, ledgers })
		ledgers.meddle = func() { w.end(&w.red, true) }
		var bodies []string
		for i := range 100 {
			bodies = append(bodies, w.envelope(&w.red, fmt.Sprint("evt-", i), nil))
		}
		got := w.batch(&w.red, ndjson(bodies...))
		w.expectLines(got, slices.Repeat([]string{refusedLine(422, "Signing key revoked")}, 100)...)
		if sizes := w.sizes(); sizes != [2]id.Index{1, 0} {
			t.Errorf("got sizes %v, want the statement alone", sizes)
		}
	}
}

// While several senders send batches, policies change and then a key is revoked: every record is consistent with its
// index, and the lines of each batch keep their order.
func TestBatchesAmongChanges(t *testing.T) {
	w := newWorld(t)
	var group sync.WaitGroup
	for sender := range 3 {
		group.Go(func() {
			for round := range 4 {
				var bodies []string
				for i := range 70 {
					bodies = append(bodies, w.envelope(&w.red, fmt.Sprintf("evt-%d-%03d", sender, round*70+i), fields{"tool_name": "acme.allow", "trace_id": fmt.Sprint("trace-", sender)}))
				}
				for _, line := range w.batch(&w.red, ndjson(bodies...)).lines {
					if status(line) != http.StatusCreated && line != refusedLine(422, "Signing key revoked") {
						t.Errorf("got %s", line)
					}
				}
			}
		})
	}
	group.Go(func() {
		for i := range 6 {
			w.activate(&w.red, fmt.Sprint("pol-", i), rules)
		}
		w.end(&w.red, true)
	})
	group.Wait()
	w.checkPlaces(t)
	w.Audit(t, w.red.tenant)
}

// If more full batches arrive than the queue can hold, they wait for one another.
func TestBatchesWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make([]batched, 6)
		const portions = 4 // of a full batch
		ledgers := &stalled{entered: make(chan struct{}, portions*len(answers)), release: make(chan struct{})}
		w := newWorld(t, func(o *ingest.Options) { ledgers.Ledgers, o.Ledgers = o.Ledgers, ledgers })
		ledgers.tenant = w.red.tenant
		var group sync.WaitGroup
		for b := range answers {
			lines := make([]string, 1000)
			for i := range lines {
				lines[i] = w.envelope(&w.red, fmt.Sprint("evt_", b, "_", i), nil)
			}
			group.Go(func() { answers[b] = w.batch(&w.red, ndjson(lines...)) })
		}
		synctest.Wait()
		if got := len(ledgers.entered); got != 3 {
			t.Errorf("%d batches are on their way into the queue, want 3", got)
		}
		close(ledgers.release)
		group.Wait()
		for b, a := range answers {
			if got := a.statuses(); got[http.StatusCreated] != 1000 {
				t.Errorf("batch %d: got %v, want 1000 created", b, got)
			}
		}
	})
}

// checkPlaces reads the whole ledger: no event comes after the end of its key, each was judged by the policy active
// at its index, and each trace is in order.
func (w *world) checkPlaces(t *testing.T) {
	t.Helper()
	active, ended, last := "none", false, map[id.Trace]id.Event{}
	for e, err := range w.Ledgers.Events(t.Context(), w.State(t, w.red.tenant), 0, 1<<40, storage.FieldRecord|storage.FieldEnvelope) {
		if err != nil {
			t.Fatal(err)
		}
		r, err := event.ParseRecord(e.Record)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case e.ActionKind == "ledger_policy_activated":
			active = activated(t, e.Envelope)
		case e.ActionKind == "ledger_key_revoked":
			ended = true
		case r.Signer == event.SignerAgent && (ended || r.Policy.PolicyID != active):
			t.Errorf("event %d: judged by %s, want %s; key ended: %v", e.Index, r.Policy.PolicyID, active, ended)
		case r.Signer == event.SignerAgent && e.ID <= last[e.Trace]:
			t.Errorf("event %d: %s after %s", e.Index, e.ID, last[e.Trace])
		}
		last[e.Trace] = e.ID
	}
}

// Batches with common events create each of them once, and all others get it as a replay.
func TestBatchesOfTheSameEvents(t *testing.T) {
	const n, senders = 60, 6
	w := newWorld(t)
	bodies := make([]string, n)
	for i := range bodies {
		bodies[i] = w.envelope(&w.red, fmt.Sprint("evt-", i), nil)
	}
	w.mustCreate(&w.blue, "evt-0", nil)
	taken := make([]int, n)
	var mu sync.Mutex
	var group sync.WaitGroup
	for sender := range senders {
		group.Go(func() {
			from := sender * n / senders // each sender starts at another event
			a := w.batch(&w.red, ndjson(slices.Concat(bodies[from:], bodies[:from])...))
			mu.Lock()
			defer mu.Unlock()
			for i, line := range a.lines {
				switch status(line) {
				case http.StatusCreated:
					taken[(from+i)%n]++
				case http.StatusOK:
				default:
					t.Errorf("got %s", line)
				}
			}
		})
	}
	group.Wait()
	if slices.Min(taken) != 1 || slices.Max(taken) != 1 {
		t.Errorf("events were created %v times", taken)
	}
	if got := w.sizes(); got != [2]id.Index{n, 1} {
		t.Errorf("got sizes %v", got)
	}
	w.Audit(t, w.red.tenant)
}
