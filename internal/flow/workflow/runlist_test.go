package workflow_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/workflow"
)

// listed reads a list of runs page by page and returns their names.
func (w *world) listed(tenant id.Tenant, f workflow.Filter, limit int) (names []string) {
	w.t.Helper()
	for before := workflow.ID(""); ; {
		found, next, err := w.workflows.List(w.t.Context(), tenant, f, before, limit)
		if err != nil || len(found) > limit {
			w.t.Fatalf("list: %d runs, %v", len(found), err)
		}
		for _, run := range found {
			names = append(names, run.External+" "+string(run.Status))
		}
		if next == "" {
			return names
		}
		before = next
	}
}

func TestList(t *testing.T) {
	w := newWorld(t)
	w.enable(red, true)
	var runs []workflow.Run
	for i := range 7 {
		b := beginning(fmt.Sprint("r", i))
		if i%2 == 1 {
			b.Agent = w.bot[red]
		}
		runs = append(runs, w.start(red, b))
		w.Pass(time.Millisecond)
	}
	w.start(blue, beginning("b0"))
	w.complete(red, runs[2].ID)
	if _, err := w.workflows.Complete(t.Context(), red, "ik_1", runs[3].ID, workflow.Ending{Status: workflow.Failed}); err != nil {
		t.Fatal(err)
	}
	w.Pass(59 * time.Minute)
	for _, i := range []int{4, 5} {
		w.record(red, runs[i].ID, step("a"))
	}
	w.Pass(2 * time.Minute) // 0, 1 and 6 have been silent for too long, which no event records yet
	check := func(when string) {
		t.Helper()
		for _, c := range []struct {
			filter workflow.Filter
			want   []string
		}{
			{workflow.Filter{}, []string{"r6 abandoned", "r5 running", "r4 running", "r3 failed", "r2 succeeded", "r1 abandoned", "r0 abandoned"}},
			{workflow.Filter{Status: workflow.Running}, []string{"r5 running", "r4 running"}},
			{workflow.Filter{Status: workflow.Abandoned}, []string{"r6 abandoned", "r1 abandoned", "r0 abandoned"}},
			{workflow.Filter{Status: workflow.Failed}, []string{"r3 failed"}},
			{workflow.Filter{Status: workflow.Aborted}, nil},
			{workflow.Filter{Agent: w.bot[red]}, []string{"r5 running", "r3 failed", "r1 abandoned"}},
			{workflow.Filter{Agent: w.bot[red], Status: workflow.Abandoned}, []string{"r1 abandoned"}},
			{workflow.Filter{Agent: w.bot[blue]}, nil},
		} {
			for _, limit := range []int{1, 2, 3, 100} {
				if got := w.listed(red, c.filter, limit); !slices.Equal(got, c.want) {
					t.Errorf("%s, %+v by %d: got %q, want %q", when, c.filter, limit, got, c.want)
				}
			}
		}
		if got, want := w.listed(blue, workflow.Filter{}, 10), []string{"b0 abandoned"}; !slices.Equal(got, want) {
			t.Errorf("%s, blue: got %q, want %q", when, got, want)
		}
	}
	check("by the clock")
	w.sweep()
	check("stated")

	found, _, err := w.workflows.List(t.Context(), red, workflow.Filter{}, runs[4].ID, 1)
	if err != nil || len(found) != 1 || found[0].ID != runs[3].ID || found[0].IngestKeyID != "ik_1" {
		t.Errorf("before the fifth: got %+v, %v", found, err)
	}
	if _, _, _, err := w.workflows.Find(t.Context(), blue, runs[4].ID, 0, 10); !fault.Is(err, fault.NotFound) {
		t.Errorf("blue finds red's run: %v", err)
	}
}

// However fast a tool starts and ends runs, the number of events is bounded.
func TestStartsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.start(red, beginning("before"))
	paid := w.Clock().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")
	w.overwrite(red, "run_tally", "", []byte(`{"running":1,"started":{"paid":"`+paid+`"}}`))
	size := w.State(t, red).Size()
	for range 3 {
		_, _, _, err := w.workflows.Start(t.Context(), red, beginning("more"))
		wantFault(t, "one more", err, fault.RateLimited, "Too many runs were started: at most 10000 in an hour")
		if got := fault.Of(err).RetryAfter; got != 360*time.Millisecond {
			t.Errorf("Retry-After: got %v", got)
		}
	}
	if got := w.State(t, red).Size(); got != size {
		t.Errorf("what was refused wrote %d events", got-size)
	}
	if _, _, made, err := w.workflows.Start(t.Context(), red, beginning("before")); err != nil || made {
		t.Errorf("a known one: made %v, %v", made, err)
	}
	w.start(blue, beginning("more"))
	w.Pass(time.Second)
	run := w.start(red, beginning("more"))
	w.complete(red, run.ID)
	w.start(red, beginning("and more"))
	_, _, _, err := w.workflows.Start(t.Context(), red, beginning("too many"))
	wantFault(t, "after a second", err, fault.RateLimited, "Too many runs were started: at most 10000 in an hour")
}
