package ingest_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/ingest"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
)

func TestReplayed(t *testing.T) {
	w := newWorld(t)
	for _, m := range []*member{&w.red, &w.blue} {
		body := w.envelope(m, "evt", nil)
		w.expect(w.send(m, body, "Idempotency-Key: k"), 201, "")
		before := w.sizes()
		for name, again := range map[string]answer{
			"the same":                  w.send(m, body, "Idempotency-Key: k"),
			"without the key":           w.send(m, body),
			"the key in quotes":         w.send(m, body, `Idempotency-Key: "k"`),
			"another key, never seen":   w.send(m, body, "Idempotency-Key: other"),
			"spelled in another way":    w.send(m, " "+strings.Replace(body, ":", " : ", 2)+"\n", "Idempotency-Key: k"),
			"by another ingest key":     w.post(eventsPath, w.ingestKey(m, org.WantedKey{}), body),
			"signed once more":          w.send(m, w.envelope(m, "evt", nil)),
			"with the same date header": w.send(m, body, "Service-Version: 2026-05-18"),
		} {
			w.expectReplayed(again, "evt")
			if t.Failed() {
				t.Fatal(name)
			}
		}
		before[m.tenant-w.red.tenant]++ // the statement about the other ingest key
		if after := w.sizes(); after != before {
			t.Errorf("sizes went from %v to %v, want nothing stored", before, after)
		}
		// A key that was used only with a known event is not bound to anything.
		w.mustCreate(m, "next", nil, "Idempotency-Key: other")
	}
}

// A stored event is answered from the ledger, whatever has changed since.
func TestReplayComesBeforeWhatChanges(t *testing.T) {
	rules := &brittle{}
	w := newWorld(t, func(o *ingest.Options) {
		rules.ActiveSource, o.Policies = o.Policies, rules
		o.MaxAge = time.Hour
	})
	m := &w.red
	body := w.envelope(m, "evt", fields{"tool_name": "acme.orders.read"})
	fresh := func(name string) string { return w.envelope(m, name, fields{"tool_name": "acme.orders.read"}) }
	w.expect(w.send(m, body), 201, "")
	limit := new(uint64)
	*limit = 1
	for _, c := range []struct {
		name    string
		change  func()
		status  int
		message string // of a new event
	}{
		{"cap", func() { w.change(m, org.Patch{EventsPerMonth: &limit}) }, 429, "Monthly event limit reached"},
		{"policy", func() { rules.broken.Store(true) }, 503, "The policy can't be read"},
		{"retired key", func() { w.end(m, false) }, 422, "Signing key retired"},
		{"revoked key", func() { w.end(m, true) }, 422, "Signing key revoked"},
	} {
		c.change()
		w.expect(w.send(m, fresh("new")), c.status, c.message)
		w.expectReplayed(w.send(m, body), "evt")
	}
	late := fresh("late")
	w.Pass(2 * time.Hour)
	w.expect(w.send(m, late), 422, "emitted_at is too far in the past")
	w.expectReplayed(w.send(m, body), "evt")
}

// end retires or revokes the member's key.
func (w *world) end(m *member, revoke bool) {
	w.Helper()
	var err error
	if revoke {
		_, err = w.agents.RevokeKey(context.Background(), m.tenant, "acc", m.agent.Agent, m.agent.Key, agent.Revocation{})
	} else {
		_, err = w.agents.RetireKey(context.Background(), m.tenant, "acc", m.agent.Agent, m.agent.Key)
	}
	if err != nil {
		w.Fatal(err)
	}
}

// together sends bodies concurrently and counts the answers by status.
func (w *world) together(m *member, bodies []string, headers ...string) map[int]int {
	w.Helper()
	counts := make(map[int]int)
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, body := range bodies {
		group.Go(func() {
			a := w.send(m, body, headers...)
			mu.Lock()
			defer mu.Unlock()
			counts[a.Code]++
		})
	}
	group.Wait()
	return counts
}

func TestTogether(t *testing.T) {
	const n = 24
	w := newWorld(t)
	same, renamed, reworded := make([]string, n), make([]string, n), make([]string, n)
	for i := range n {
		same[i] = w.envelope(&w.red, "same", nil)
		renamed[i] = w.envelope(&w.red, "renamed-"+string(rune('a'+i)), nil)
		reworded[i] = w.envelope(&w.red, "reworded", fields{"trace_id": string(rune('a' + i))})
	}
	w.mustCreate(&w.blue, "same", nil, "Idempotency-Key: k")
	for _, c := range []struct {
		name    string
		bodies  []string
		headers []string
		others  int // status of all answers except one, which is 201
	}{
		{"the same request", same, []string{"Idempotency-Key: s"}, http.StatusOK},
		{"events with one idempotency key", renamed, []string{"Idempotency-Key: k"}, http.StatusUnprocessableEntity},
		{"events with one id", reworded, nil, http.StatusUnprocessableEntity},
	} {
		before := w.sizes()
		got := w.together(&w.red, c.bodies, c.headers...)
		if got[http.StatusCreated] != 1 || got[c.others] != n-1 {
			t.Errorf("%s: got %v, want one 201 and %d of %d", c.name, got, n-1, c.others)
		}
		before[0]++
		if after := w.sizes(); after != before {
			t.Errorf("%s: got sizes %v, want %v", c.name, after, before)
		}
	}
	w.Audit(t, w.red.tenant)
}

// elusive has events that only the append finds.
type elusive struct {
	ingest.Ledgers
	tries atomic.Int32
}

func (e *elusive) AppendTo(_ context.Context, _ *log.State, prepares []log.Prepare) []log.Outcome {
	e.tries.Add(1)
	return slices.Repeat([]log.Outcome{{Err: log.ErrDuplicate}}, len(prepares))
}

func TestDuplicatesAreNotWaitedForEndlessly(t *testing.T) {
	ledgers := &elusive{}
	w := newWorld(t, func(o *ingest.Options) { ledgers.Ledgers, o.Ledgers = o.Ledgers, ledgers })
	a := w.send(&w.red, w.envelope(&w.red, "evt", nil))
	w.expect(a, 503, "Too many requests for the same event")
	if a.fields["code"] != "overloaded" || a.Header().Get("Retry-After") != "1" {
		t.Errorf("got code %v, Retry-After %q", a.fields["code"], a.Header().Get("Retry-After"))
	}
	if got := ledgers.tries.Load(); got != 8 {
		t.Errorf("got %d tries, want 8", got)
	}
}

// failing answers every append with one error.
type failing struct {
	ingest.Ledgers
	err error
}

func (f *failing) AppendTo(_ context.Context, _ *log.State, prepares []log.Prepare) []log.Outcome {
	return slices.Repeat([]log.Outcome{{Err: f.err}}, len(prepares))
}

func TestFailedAppends(t *testing.T) {
	for code, kind := range map[string]fault.Kind{
		"overloaded": fault.Overloaded, "outcome_unknown": fault.OutcomeUnknown, "unavailable": fault.Unavailable, "frozen": fault.Unavailable,
	} {
		w := newWorld(t, func(o *ingest.Options) {
			o.Ledgers = &failing{o.Ledgers, &fault.Error{Kind: kind, Code: code, Message: "Later"}}
		})
		a := w.send(&w.red, w.envelope(&w.red, "evt", nil))
		w.expect(a, 503, "Later")
		if a.fields["code"] != code || a.Header().Get("Retry-After") == "" || a.fields["request_id"] == "" {
			t.Errorf("%s: got %s, Retry-After %q", code, a.Body, a.Header().Get("Retry-After"))
		}
	}
}

// An event that a crash could still lose is never answered with 201 or 200.
func TestNothingIsAnsweredBeforeItIsDurable(t *testing.T) {
	w := newWorld(t)
	w.mustCreate(&w.blue, "evt", nil)
	release := w.Store.Hold()
	body := w.envelope(&w.red, "evt", nil)
	answers := make(chan answer, 2)
	for range 2 {
		go func() { answers <- w.send(&w.red, body) }()
	}
	for applied := false; !applied; time.Sleep(time.Millisecond) {
		h, err := w.Store.Head(t.Context(), w.red.tenant)
		applied = err == nil && h.Size == 1
	}
	if len(answers) != 0 || w.sizes()[0] != 0 {
		t.Errorf("%d answers at size %d before anything is durable", len(answers), w.sizes()[0])
	}
	release()
	got := map[int]int{(<-answers).Code: 1}
	got[(<-answers).Code]++
	if got[http.StatusCreated] != 1 || got[http.StatusOK] != 1 {
		t.Errorf("got %v, want one 201 and one 200", got)
	}
}

// Two ingest keys of an organization may use the same Idempotency-Key. They do not affect each other or learn of each
// other.
func TestIdempotencyKeysOfTwoIngestKeys(t *testing.T) {
	w := newWorld(t)
	second := w.ingestKey(&w.red, org.WantedKey{})
	send := func(token, name, key string) answer {
		return w.post(eventsPath, token, w.envelope(&w.red, name, nil), "Idempotency-Key: "+key)
	}
	w.expect(send(w.red.token, "first", "k"), http.StatusCreated, "")
	w.expect(send(second, "second", "k"), http.StatusCreated, "")
	w.expectReplayed(send(w.red.token, "first", "k"), "first")
	w.expectReplayed(send(second, "second", "k"), "second")
	w.expectReplayed(send(second, "first", "new"), "first")
	w.expect(send(second, "third", "k"), http.StatusUnprocessableEntity, "Idempotency-Key was used with another event")
	w.expect(send(w.red.token, "third", "k"), http.StatusUnprocessableEntity, "Idempotency-Key was used with another event")
	var group sync.WaitGroup
	for i, token := range []string{w.red.token, second} {
		for _, name := range []string{"a", "b", "c"} {
			group.Go(func() {
				w.expect(send(token, fmt.Sprint("at-once-", name, i), "at-once-"+name), http.StatusCreated, "")
			})
		}
	}
	group.Wait()
	w.mustCreate(&w.blue, "first", nil, "Idempotency-Key: k")
}
