package eventlist_test

import (
	"context"
	"fmt"
	"net/url"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/eventlist"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/log"
)

const red, blue = ledgertest.Red, ledgertest.Blue

// house is a service with the reader of its events.
type house struct {
	*ledgertest.Service
	t      testing.TB
	reader *eventlist.Reader
}

func newHouse(t testing.TB) *house {
	h := &house{Service: ledgertest.New(t), t: t}
	for _, tenant := range []id.Tenant{red, blue} {
		h.Found(t, tenant)
	}
	h.reader = &eventlist.Reader{Ledgers: h.Ledgers, Index: index.New(index.Options{Ledgers: h.Ledgers, Store: h.Engine})}
	return h
}

// send appends n events of an organization to a ledger.
func (h *house) send(of, ledger id.Tenant, name string, n int) {
	h.t.Helper()
	agent := ledgertest.NewAgent()
	for i := range n {
		e := agent.Envelope(h.t, of, fmt.Sprint(name, i), nil)
		_, err := h.Ledgers.Append(h.t.Context(), ledger, func(_ context.Context, s *log.State) (log.Submission, error) {
			return log.Submission{Drafts: []log.Draft{log.NewDraft(s.Identity(), e, agent.Attestation(e))}}, nil
		})
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

// Each answer is about one log and names its predecessor, which can be queried too, but only within the
// organization's own line.
func TestFormerLogs(t *testing.T) {
	h := newHouse(t)
	h.send(red, red, "first", 3)
	h.send(blue, blue, "other", 1)
	if err := h.Ledgers.Freeze(t.Context(), red, "a reason"); err != nil {
		t.Fatal(err)
	}
	successor, err := h.Ledgers.Succeed(t.Context(), h.State(t, red))
	if err != nil {
		t.Fatal(err)
	}
	now := successor.Identity().Tenant
	h.send(red, now, "second", 2)
	old, others := h.State(t, red), string(h.State(t, blue).Identity().Origin)
	for _, c := range []struct {
		log    string
		size   id.Index
		newest id.Event
		before *wire.Predecessor
	}{
		{"", h.State(t, now).Size(), "second1", &wire.Predecessor{Log: old.Identity().Origin, Events: old.Size()}},
		{string(successor.Identity().Origin), h.State(t, now).Size(), "second1",
			&wire.Predecessor{Log: old.Identity().Origin, Events: old.Size()}},
		{string(old.Identity().Origin), old.Size(), "first2", nil},
	} {
		a := eventlist.Asked{Tenant: now, Values: url.Values{"log": {c.log}, "signer": {"agent"}}, Limit: 10}
		events, err := h.reader.List(t.Context(), a)
		if err != nil || events.Events[0].ID != c.newest || events.IndexedTo != c.size {
			t.Fatalf("%q: got %+v, %v", c.log, events, err)
		}
		h.comparePredecessor(c.log, events.Predecessor, c.before)
		traces, err := h.reader.ListTraces(t.Context(), a)
		if err != nil || len(traces.Traces) != 1 || traces.Traces[0].Events != len(events.Events) {
			t.Errorf("%q: got traces %+v, %v", c.log, traces, err)
		}
		h.comparePredecessor(c.log, traces.Predecessor, c.before)
		tree, err := h.reader.Trace(t.Context(), a, traces.Traces[0].ID)
		if err != nil || len(tree.Events) != len(events.Events) {
			t.Errorf("%q: got trace %+v, %v", c.log, tree, err)
		}
		h.comparePredecessor(c.log, tree.Predecessor, c.before)
		counts, err := (&eventlist.ActReader{Events: h.reader}).Count(t.Context(), a)
		if err != nil || counts.IndexedTo != c.size {
			t.Errorf("%q: got counts %+v, %v", c.log, counts, err)
		}
		h.comparePredecessor(c.log, counts.Predecessor, c.before)
	}
	for _, name := range []string{others, "none"} {
		a := eventlist.Asked{Tenant: now, Values: url.Values{"log": {name}}, Limit: 10}
		if got, err := h.reader.List(t.Context(), a); !fault.Is(err, fault.NotFound) {
			t.Errorf("log %s: got %+v, %v", name, got, err)
		}
		if got, err := h.reader.Find(t.Context(), a, "other0"); !fault.Is(err, fault.NotFound) {
			t.Errorf("event of log %s: got %+v, %v", name, got, err)
		}
	}
}

func (h *house) comparePredecessor(log string, got, want *wire.Predecessor) {
	h.t.Helper()
	if (got == nil) != (want == nil) || got != nil && *got != *want {
		h.t.Errorf("%q: got predecessor %+v, want %+v", log, got, want)
	}
}
