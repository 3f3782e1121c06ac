package index_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
)

// Counts, traces and single events equal those of a naive scan.
func TestCountsTracesAndHashes(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := newWorld(t, open(t), 2*index.ChunkEvents+300)
		w.follow()
		for _, tenant := range []id.Tenant{red, blue} {
			w.checkCounts(tenant, index.Bound{}, index.Bound{})
			w.checkCounts(tenant, index.Bound{Given: true, Index: 100}, index.Bound{Given: true, Index: index.ChunkEvents + 7})
			w.checkCounts(tenant, index.Bound{Given: true, At: w.rows[tenant][5000].ReceivedAt}, index.Bound{})
			for _, at := range []int{0, 5000, index.ChunkEvents, len(w.rows[tenant]) - 1} {
				want := w.rows[tenant][at]
				if got, err := w.index.Find(t.Context(), tenant, want.Hash.String()); err != nil || got != want {
					t.Errorf("event %d by its hash: got %+v, %v", at, got, err)
				}
				if got, err := w.index.Find(t.Context(), red+blue-tenant, want.Hash.String()); !fault.Is(err, fault.NotFound) {
					t.Errorf("of the other organization: got %+v, %v", got, err)
				}
				w.checkTrace(tenant, want.Trace)
			}
			w.checkTraces(tenant)
		}
	})
}

func (w *world) checkCounts(tenant id.Tenant, from, to index.Bound) {
	w.t.Helper()
	want, total := map[index.Group]uint64{}, uint64(0)
	q := index.Query{Filter: index.Filter{From: from, To: to}}
	for i := range w.rows[tenant] {
		if r := &w.rows[tenant][i]; w.wants(tenant, &q, r) {
			want[index.Group{Tool: r.Tool, Decision: r.Effective, Rule: r.Rule}]++
			total++
		}
	}
	got, err := w.index.Stats(w.t.Context(), tenant, from, to, []index.Dimension{index.Decision, index.Tool, index.Rule})
	if err != nil || got.Events != total || len(got.Counts) != len(want) {
		w.t.Fatalf("got %d events in %d groups, %v, want %d in %d", got.Events, len(got.Counts), err, total, len(want))
	}
	for i, c := range got.Counts {
		if want[c.Group] != c.Events || i > 0 && c.Events > got.Counts[i-1].Events {
			w.t.Errorf("%+v: got %d, want %d", c.Group, c.Events, want[c.Group])
		}
	}
}

func (w *world) checkTrace(tenant id.Tenant, trace id.Trace) {
	w.t.Helper()
	var want []index.Row
	for _, r := range w.rows[tenant] {
		if r.Trace == trace {
			want = append(want, r)
		}
	}
	got, parents, err := w.index.Tree(w.t.Context(), tenant, trace, index.Query{Limit: 1000})
	if err != nil || !slices.Equal(got.Rows, want) {
		w.t.Fatalf("%s: got %d events, %v, want %d", trace, len(got.Rows), err, len(want))
	}
	for i, r := range got.Rows { // each event names the one before it in the log
		below := i > 0 && got.Rows[i-1].Index+1 == r.Index
		if (parents[i] != "") != below || below && parents[i] != got.Rows[i-1].Event {
			w.t.Errorf("%s: got parent %q", r.Event, parents[i])
		}
	}
}

// checkTraces compares all pages of a list of traces.
func (w *world) checkTraces(tenant id.Tenant) {
	w.t.Helper()
	filter := index.Filter{Agent: "agt_3", Effective: id.Deny}
	q := index.Query{Filter: filter, Limit: 7}
	var want, got []id.Trace
	events := map[id.Trace]int{}
	for _, r := range slices.Backward(w.rows[tenant]) {
		events[r.Trace]++
		if w.wants(tenant, &q, &r) && !slices.Contains(want, r.Trace) {
			want = append(want, r.Trace)
		}
	}
	for more := true; more && len(got) < 60; {
		page, err := w.index.Traces(w.t.Context(), tenant, q)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, found := range page.Traces {
			if got = append(got, found.ID); found.Events != events[found.ID] || !found.Complete {
				w.t.Errorf("%s: got %d events, want %d", found.ID, found.Events, events[found.ID])
			}
		}
		q.After, more = page.Next, page.Next != nil
	}
	if len(got) == 0 || !slices.Equal(got, want[:min(len(want), len(got))]) {
		w.t.Errorf("got %v, want %v", got, want[:min(len(want), len(got))])
	}
}

// The follower indexes what is due of all ledgers: those that existed before its start and those that move.
func TestRun(t *testing.T) {
	w := newWorld(t, enginetest.Pebble(t), index.ChunkEvents+10)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { w.index.Run(ctx, quiet); close(ended) }()
	w.awaitPosition(red, 1)
	w.awaitPosition(blue, 1)
	for _, tenant := range []id.Tenant{red, blue} {
		w.sendEvents(tenant, index.ChunkEvents)
	}
	w.awaitPosition(red, 2)
	w.awaitPosition(blue, 2)
	stop()
	<-ended
}

// awaitPosition waits until a ledger's index has the given number of chunks.
func (w *world) awaitPosition(tenant id.Tenant, chunks int) {
	w.t.Helper()
	for w.t.Context().Err() == nil {
		columns, err := w.engine.Scan(w.t.Context(), tenant, "derived/index_columns", "", "", chunks)
		if err != nil {
			w.t.Fatal(err)
		}
		if len(columns) == chunks {
			return
		}
		time.Sleep(time.Millisecond) // between two looks
	}
}

// sendEvents appends events by package log.
func (w *world) sendEvents(tenant id.Tenant, n int) {
	w.t.Helper()
	agent := ledgertest.NewAgent()
	w.sendBy(agent, tenant, n)
}
