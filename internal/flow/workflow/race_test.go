package workflow_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/flow/workflow"
)

func TestTwentyAtOnce(t *testing.T) { onEngines(t, twentyAtOnce) }

func twentyAtOnce(t *testing.T, w *world) {
	const callers = 20
	nodes := []*workflow.Workflows{w.workflows, w.node()}
	var group sync.WaitGroup
	runs := make([]workflow.ID, callers)
	for i := range callers {
		group.Go(func() {
			run, _, _, err := nodes[i%2].Start(t.Context(), red, beginning("same"))
			if err != nil {
				t.Error(err)
			}
			runs[i] = run.ID
		})
	}
	group.Wait()
	for _, name := range runs {
		if name != runs[0] {
			t.Fatalf("two runs: %s, %s", runs[0], name)
		}
	}
	recorded := make([]workflow.Recorded, callers)
	for i := range callers {
		group.Go(func() {
			all, err := nodes[i%2].Record(t.Context(), red, "ik_1", runs[0], []workflow.Step{pay("same", 7)})
			if err != nil {
				t.Error(err)
				return
			}
			recorded[i] = all[0]
		})
	}
	group.Wait()
	made := 0
	for _, r := range recorded {
		if !r.Replayed {
			made++
		}
		if r.Hash != recorded[0].Hash {
			t.Errorf("two events: %+v, %+v", recorded[0], r)
		}
	}
	if steps := len(w.steps(red)); steps != 1 || made != 1 {
		t.Errorf("got %d events, %d times made; want 1", steps, made)
	}
	if got := w.runs(red); len(got) != 1 {
		t.Errorf("ledger: got %q", got)
	}
}

// If a run is completed while steps arrive, its root covers exactly the steps before its end.
func TestCompleteAmongSteps(t *testing.T) { onEngines(t, completeAmongSteps) }

// On one processor, the transaction that was prepared first is always prepared first again. That must not exclude
// another one permanently.
func TestCompleteAmongStepsOnOneProcessor(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	onEngines(t, completeAmongSteps)
}

func completeAmongSteps(t *testing.T, w *world) {
	nodes := []*workflow.Workflows{w.workflows, w.node()}
	for round := range 8 {
		run := w.start(red, beginning(""))
		var group sync.WaitGroup
		var mu sync.Mutex
		answered := 0
		for i := range 12 {
			group.Go(func() {
				_, err := nodes[i%2].Record(t.Context(), red, "ik_1", run.ID, []workflow.Step{step(fmt.Sprint("s", i))})
				if err != nil && !fault.Is(err, fault.Conflict) {
					t.Error(err)
				}
				if err == nil {
					mu.Lock()
					answered++
					mu.Unlock()
				}
			})
			if i == 4+round%4 {
				group.Go(func() {
					if _, err := nodes[round%2].Complete(t.Context(), red, "ik_1", run.ID, workflow.Ending{Status: workflow.Succeeded}); err != nil {
						t.Error(err)
					}
				})
			}
		}
		group.Wait()
		got, events := w.get(red, run.ID)
		if got.Status != workflow.Succeeded || got.Result.Recorded != answered || events[len(events)-1].Kind != "ledger_run" {
			t.Errorf("round %d: %d steps were acknowledged, the run has %+v", round, answered, got.Result)
		}
		w.checkRoot(red, got)
	}
}
