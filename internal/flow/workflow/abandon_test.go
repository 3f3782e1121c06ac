package workflow_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

func (w *world) sweep() {
	w.t.Helper()
	if err := w.workflows.Sweep(w.t.Context()); err != nil {
		w.t.Error(err)
	}
}

// dues returns the entries of the due index.
func (w *world) dues() (all []schedule.Entry) {
	w.t.Helper()
	records, err := w.Engine.Scan(w.t.Context(), id.Service, "run_due", "", "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range records {
		e, err := schedule.ParseEntry(r.Key)
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func TestAbandoned(t *testing.T) {
	w := newWorld(t)
	run, other := w.start(red, beginning("")), w.start(blue, beginning(""))
	w.Pass(30 * time.Minute)
	w.record(red, run.ID, step("a"))
	w.Pass(time.Hour - time.Millisecond)
	w.sweep()
	if got, _ := w.get(red, run.ID); got.Status != workflow.Running {
		t.Errorf("just before: got %s", got.Status)
	}
	if got, _ := w.get(blue, other.ID); got.Status != workflow.Abandoned || got.EndedAt == 0 {
		t.Errorf("the other organization's, silent since its start: got %+v", got)
	}
	w.Pass(time.Millisecond)

	// By the clock, before the event that records it.
	got, _ := w.get(red, run.ID)
	if got.Status != workflow.Abandoned || got.EndedAt != 0 {
		t.Errorf("by the clock: got %+v", got)
	}
	_, err := w.workflows.Record(t.Context(), red, "ik_1", run.ID, []workflow.Step{step("b")})
	wantFault(t, "a step", err, fault.Conflict, "The run is abandoned")
	_, err = w.workflows.Complete(t.Context(), red, "ik_1", run.ID, workflow.Ending{Status: workflow.Succeeded})
	wantFault(t, "complete", err, fault.Conflict, "The run is abandoned")
	if again := w.record(red, run.ID, step("a")); !again[0].Replayed {
		t.Error("a known step is not told again")
	}

	for range 3 {
		w.sweep()
	}
	got, _ = w.get(red, run.ID)
	if got.Status != workflow.Abandoned || got.Result.Recorded != 1 || got.Result.Events != 2 {
		t.Errorf("stated: got %+v", got)
	}
	w.checkRoot(red, got)
	if want := []string{"started by ik_1", "abandoned by operator"}; !slices.Equal(w.runs(red), want) {
		t.Errorf("ledger: got %q, want %q", w.runs(red), want)
	}
	if all := w.dues(); len(all) != 0 {
		t.Errorf("due: got %v", all)
	}
	_, err = w.workflows.Complete(t.Context(), red, "ik_1", run.ID, workflow.Ending{Status: workflow.Succeeded})
	wantFault(t, "complete afterwards", err, fault.Conflict, "The run is abandoned")
}

// A run of a ledger that was ahead of the clock continues, and is abandoned by the times of its later steps.
func TestRunAhead(t *testing.T) {
	w := newWorld(t)
	const ahead = 400 * 24 * time.Hour
	w.Pass(ahead)
	run := w.start(red, beginning(""))
	w.Pass(-ahead)
	other := w.start(blue, beginning(""))
	_, err := w.SystemEvents.Append(t.Context(), red, sysevent.Operator, func(ctx context.Context, s *log.State) (sysevent.Change, error) {
		c, err := w.Ledgers.CorrectClock(ctx, s)
		if err != nil {
			return sysevent.Change{}, err
		}
		return sysevent.Change{Clock: c, Statements: []sysevent.Statement{{Kind: sysevent.Clock, Payload: c.Payload("a test")}}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.sweep()
	if got, _ := w.get(red, run.ID); got.Status != workflow.Running {
		t.Errorf("after the correction: got %s", got.Status)
	}
	w.record(red, run.ID, step("a"))
	w.Pass(time.Hour)
	w.sweep()
	for tenant, name := range map[id.Tenant]workflow.ID{red: run.ID, blue: other.ID} {
		if got, _ := w.get(tenant, name); got.Status != workflow.Abandoned || got.EndedAt == 0 {
			t.Errorf("of %d, silent since: got %+v", tenant, got)
		}
	}
}

// A long run has one entry in the index, which moves.
func TestDueMovesAlong(t *testing.T) {
	w := newWorld(t)
	run := w.start(red, beginning(""))
	for i := range 20 {
		w.Pass(20 * time.Minute)
		w.record(red, run.ID, step(strings.Repeat("x", i+1)))
		w.sweep()
		all := w.dues()
		if len(all) != 1 || all[0].At > id.InstantOf(w.Clock().Add(time.Hour)) || all[0].At <= id.InstantOf(w.Clock()) {
			t.Fatalf("after %d steps: got %v", i+1, all)
		}
	}
	w.complete(red, run.ID)
	w.Pass(time.Hour)
	w.sweep()
	if got, _ := w.get(red, run.ID); got.Status != workflow.Succeeded || len(w.dues()) != 0 {
		t.Errorf("got %s, due %v", got.Status, w.dues())
	}
}

// Two processes and a failing store record it once.
func TestAbandonedOnce(t *testing.T) {
	for name, failure := range map[string]storagetest.Failure{
		"none": storagetest.NoFailure, "refused": storagetest.Refused, "request lost": storagetest.RequestLost, "answer lost": storagetest.AnswerLost,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			nodes := []*workflow.Workflows{w.workflows, w.node()}
			run := w.start(red, beginning(""))
			w.Pass(time.Hour)
			w.once(red, failure)
			var group sync.WaitGroup
			for i := range 8 {
				group.Go(func() { _ = nodes[i%2].Sweep(t.Context()) })
			}
			group.Wait()
			w.Store.Fail(nil)
			w.sweep()
			if got := w.runs(red); len(got) != 2 {
				t.Errorf("ledger: got %q", got)
			}
			if got, _ := w.get(red, run.ID); got.EndedAt == 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// An entry without its run, left by a crash during a start, is removed after an hour.
func TestDueWithoutRun(t *testing.T) {
	w := newWorld(t)
	w.Store.Fail(func(b storage.Batch) storagetest.Failure {
		if len(b.Events) > 0 {
			return storagetest.Refused
		}
		return storagetest.NoFailure
	})
	if _, _, _, err := w.workflows.Start(t.Context(), red, beginning("")); err == nil {
		t.Fatal("started without a store")
	}
	w.Store.Fail(nil)
	if len(w.dues()) == 0 {
		t.Fatal("no entry was written before the run")
	}
	w.Pass(2*time.Hour - time.Millisecond)
	w.sweep()
	if len(w.dues()) == 0 {
		t.Error("the entry went before its run could have come")
	}
	w.Pass(time.Millisecond)
	w.sweep()
	if all := w.dues(); len(all) != 0 {
		t.Errorf("due: got %v", all)
	}
}

// The records in the service's partition for a run that is copied.
func TestServiceRecords(t *testing.T) {
	w := newWorld(t)
	run := w.start(red, beginning(""))
	at := func() []storage.Record {
		r, err := w.Store.Get(t.Context(), red, "run", string(run.ID))
		if err != nil {
			t.Fatal(err)
		}
		records, err := workflow.ServiceRecords(99, r)
		if err != nil {
			t.Fatal(err)
		}
		return records
	}
	want := schedule.Entry{At: run.LastAt + 3_600_000, Tenant: 99, Name: string(run.ID)}
	if got := at(); len(got) != 1 || got[0].Key != want.Key() || got[0].Kind != "run_due" {
		t.Errorf("running: got %v, want %s", got, want.Key())
	}
	w.complete(red, run.ID)
	if got := at(); len(got) != 0 {
		t.Errorf("ended: got %v", got)
	}
	if _, err := workflow.ServiceRecords(99, storage.Record{Kind: "run", Value: []byte("{")}); err == nil {
		t.Error("a damaged run was read")
	}
	if got, err := workflow.ServiceRecords(99, storage.Record{Kind: "run_step"}); err != nil || len(got) != 0 {
		t.Errorf("another record: got %v, %v", got, err)
	}
}
