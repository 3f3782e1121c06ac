package workflow_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// The cost of a step does not grow with the number of steps: it reads nothing, and writes the same amount. The cost
// of a page of the run does not grow either.
func TestWorkDoesNotGrow(t *testing.T) {
	w := newWorld(t)
	run := w.start(red, beginning(""))
	records, size := 0, 0
	w.Store.Fail(func(b storage.Batch) storagetest.Failure {
		for _, c := range b.Changes {
			records, size = records+1, size+len(c.Key)+len(c.Value)
		}
		return storagetest.NoFailure
	})
	next := 0
	report := func() (reads, written, bytes int) {
		before := w.records.reads.Load() + w.records.lists.Load()
		records, size = 0, 0
		list := make([]workflow.Step, workflow.MaxAtOnce)
		for i := range list {
			list[i], next = step(fmt.Sprintf("step-%05d", next)), next+1
		}
		w.record(red, run.ID, list...)
		return int(w.records.reads.Load() + w.records.lists.Load() - before), records, size
	}
	page := func(after, limit int) int {
		before := w.records.reads.Load() + w.records.lists.Load()
		_, events, _, err := w.workflows.Find(t.Context(), red, run.ID, after, limit)
		if err != nil || len(events) != limit {
			t.Fatalf("page after %d: %d events, %v", after, len(events), err)
		}
		return int(w.records.reads.Load() + w.records.lists.Load() - before)
	}
	report()
	firstReads, firstWritten, firstBytes := report()
	firstPage := page(3, 20)
	for range 38 {
		report()
	}
	reads, written, bytes := report()
	if reads != firstReads || reads != 0 || written != firstWritten || written != workflow.MaxAtOnce+2 || bytes > firstBytes+64 {
		t.Errorf("steps: at first %d records read, %d with %d bytes written; after 2,000 steps %d, %d, %d", firstReads, firstWritten, firstBytes, reads, written, bytes)
	}
	for _, after := range []int{3, 1000, 1980} {
		if got := page(after, 20); got > firstPage+4 {
			t.Errorf("page after %d read %d records, at first %d", after, got, firstPage)
		}
	}
}

// The pages of a run match the list of all its steps, however the steps were divided into requests and wherever a
// page begins and ends.
func TestPages(t *testing.T) {
	w := newWorld(t)
	random := rand.New(rand.NewPCG(3, 4))
	run, other := w.start(red, beginning("")), w.start(red, beginning(""))
	var want []string
	for n := 0; n < 90; {
		var list []workflow.Step
		for range 1 + random.IntN(9)*random.IntN(2) {
			list, n = append(list, step(fmt.Sprint(n))), n+1
			want = append(want, list[len(list)-1].Key)
		}
		w.record(red, run.ID, list...)
		w.record(red, other.ID, step(fmt.Sprint("other", n)))
	}
	check := func(node *workflow.Workflows, total int) {
		t.Helper()
		for _, limit := range []int{1, 2, 7, 50, 1000} {
			var got []string
			for after, more := 0, true; more; {
				_, events, next, err := node.Get(t.Context(), red, "ik_1", run.ID, after, limit)
				if err != nil || len(events) != min(limit, total-after) {
					t.Fatalf("after %d: %d events, %v", after, len(events), err)
				}
				for _, e := range events {
					if e.Step != nil {
						got = append(got, e.Step.Key)
					}
				}
				after, more = next, next != 0
			}
			if !slices.Equal(got, want) {
				t.Errorf("pages of %d: got %q, want %q", limit, got, want)
			}
		}
		for _, after := range []int{total, total + 1, 1 << 30} {
			if _, events, next, err := node.Get(t.Context(), red, "ik_1", run.ID, after, 10); err != nil || len(events) != 0 || next != 0 {
				t.Errorf("after %d: %d events, next %d, %v", after, len(events), next, err)
			}
		}
	}
	check(w.workflows, 1+len(want))
	w.complete(red, run.ID)
	check(w.node(), 2+len(want))
}

// The number of distinct step_keys is exact, in whatever order attempts arrive and whichever process records them.
func TestKeysAreCounted(t *testing.T) {
	w := newWorld(t)
	random := rand.New(rand.NewPCG(5, 6))
	nodes := []*workflow.Workflows{w.workflows, w.node()}
	run := w.start(red, beginning(""))
	keys, attempts := map[string]bool{}, map[string]bool{}
	for range 60 {
		var list []workflow.Step
		inList := map[string]bool{}
		for range 1 + random.IntN(4) {
			s := step(fmt.Sprint(random.IntN(30)))
			s.Attempt = 1 + random.IntN(4)
			name := fmt.Sprint(s.Key, "/", s.Attempt)
			if inList[name] {
				continue
			}
			inList[name], attempts[name], keys[s.Key] = true, true, true
			list = append(list, s)
		}
		if _, err := nodes[random.IntN(2)].Record(t.Context(), red, "ik_1", run.ID, list); err != nil {
			t.Fatal(err)
		}
		if got, _ := w.get(red, run.ID); got.Result.Recorded != len(keys) || got.Result.Events != 1+len(attempts) {
			t.Fatalf("got %d step_keys and %d events, want %d and %d", got.Result.Recorded, got.Result.Events, len(keys), 1+len(attempts))
		}
	}
	ended := w.complete(red, run.ID)
	if ended.Result.Recorded != len(keys) {
		t.Errorf("ended: got %+v", ended.Result)
	}
	w.checkRoot(red, ended)
}
