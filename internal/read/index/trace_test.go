package index_test

import (
	"maps"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/storage"
)

// A trace is counted to its first event, however long it is. Only its agents are limited to the latest events, and
// the answer then indicates it.
func TestLongTraces(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := newWorld(t, open(t), index.ChunkEvents+3000, func(f *filler) { f.traces = 3 })
		check := func(when string) {
			t.Helper()
			for _, tenant := range []id.Tenant{red, blue} {
				w.checkLongTraces(when, tenant)
			}
		}
		check("without an index")
		w.follow()
		check("with one")
	})
}

// A page counts a bounded number of events of long traces, and indicates which traces are incomplete. All stay on the
// page, with their first and last events.
func TestCountsOfLongTracesAreBounded(t *testing.T) {
	w := newWorld(t, enginetest.Pebble(t), index.ChunkEvents+3000, func(f *filler) { f.traces = 3 })
	w.follow()
	const most = 4000
	w.index.CountAtMost(most)
	for _, tenant := range []id.Tenant{red, blue} {
		page, err := w.index.Traces(t.Context(), tenant, index.Query{Limit: 10})
		if err != nil || len(page.Traces) != 3 {
			t.Fatalf("got %d traces, %v", len(page.Traces), err)
		}
		counted, parts := 0, 0
		for _, got := range page.Traces {
			counted += got.Events
			if got.AtLeast {
				parts++
			}
			if got.First.Trace != got.ID || got.Last.Trace != got.ID || got.First.Index >= got.Last.Index {
				t.Errorf("%s: first %d, last %d", got.ID, got.First.Index, got.Last.Index)
			}
		}
		if counted != most || parts == 0 {
			t.Errorf("got %d events, %d of 3 traces in part, want %d", counted, parts, most)
		}
	}
}

func (w *world) checkLongTraces(when string, tenant id.Tenant) {
	w.t.Helper()
	want := map[id.Trace]*index.Trace{}
	for _, r := range w.rows[tenant] {
		found := want[r.Trace]
		if found == nil {
			found = &index.Trace{First: r, Decisions: map[id.Decision]int{}}
			want[r.Trace] = found
		}
		found.Last = r
		found.Events++
		found.Decisions[r.Effective]++
	}
	var all []index.Trace
	for q, more := (index.Query{Limit: 2}), true; more; {
		page, err := w.index.Traces(w.t.Context(), tenant, q)
		if err != nil {
			w.t.Fatal(err)
		}
		all, q.After, more = append(all, page.Traces...), page.Next, page.Next != nil
	}
	if len(all) != len(want) {
		w.t.Fatalf("%s: got %d traces, want %d", when, len(all), len(want))
	}
	for _, got := range all {
		want := want[got.ID]
		if got.Events != want.Events || !maps.Equal(got.Decisions, want.Decisions) || got.First != want.First ||
			got.Last != want.Last || got.Complete {
			w.t.Errorf("%s: %s: got %d events %v, first %d, last %d, complete %v, want %d %v, %d, %d", when, got.ID,
				got.Events, got.Decisions, got.First.Index, got.Last.Index, got.Complete, want.Events, want.Decisions,
				want.First.Index, want.Last.Index)
		}
	}
}
