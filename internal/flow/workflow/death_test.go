package workflow_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

// onEngines runs a test on the in-memory store and on each engine.
func onEngines(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("memory", func(t *testing.T) { test(t, newWorld(t)) })
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		test(t, newWorldOn(t, ledgertest.On(t, open(t))))
	})
}

// The service dies before or after any write to the store of a run that is completed and of one that goes silent. A
// new process starts on the stored state: every answer still holds, and a client that retries reaches the same end.
func TestDeathAtEachWrite(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		for _, after := range []bool{false, true} {
			n := 0
			for dieAt(t, open(t), n, after) {
				n++
			}
			if n < 9 { // names and due entry 3, start, steps 2, end, and the other run's start 2, end
				t.Errorf("died at %d writes, want 9 or more", n)
			}
		}
	})
}

// dieAt reports whether the run has that many writes.
func dieAt(t *testing.T, engine storage.Engine, n int, after bool) bool {
	t.Helper()
	m := &enginetest.Mortal{Engine: engine}
	w := newWorldOn(t, ledgertest.On(t, m))
	m.DieAt(n, after)
	answers := &answers{when: fmt.Sprintf("death at write %d, done %v", n, after)}
	answers.way(w)
	died := m.Dead()
	if err := w.Ledgers.Close(); err != nil {
		t.Fatal(err)
	}
	w = &world{Service: w.Again(t, engine), t: t, orgs: w.orgs, bot: w.bot}
	w.open()
	answers.way(w)
	answers.check(w)
	return died
}

// answers are the answers that a tool received from all processes.
type answers struct {
	when     string
	run      workflow.ID
	silent   workflow.ID
	recorded map[string]workflow.Recorded
	ended    *workflow.Run
}

// way runs from the start to the end of both runs, or until an answer is missing. It repeats every request and
// expects the earlier answer.
func (a *answers) way(w *world) {
	w.t.Helper()
	ctx := w.t.Context()
	run, _, _, err := w.workflows.Start(ctx, red, beginning("ext"))
	if err != nil {
		return
	}
	if a.run != "" && run.ID != a.run {
		w.t.Errorf("%s: two runs, %s and %s", a.when, a.run, run.ID)
	}
	a.run = run.ID
	for _, list := range [][]workflow.Step{{step("a")}, {step("b"), pay("c", 7)}} {
		recorded, err := w.workflows.Record(ctx, red, "ik_1", a.run, list)
		if err != nil {
			return
		}
		a.keep(w, list, recorded)
	}
	ended, err := w.workflows.Complete(ctx, red, "ik_1", a.run, workflow.Ending{Status: workflow.Succeeded})
	if err != nil {
		return
	}
	if a.ended != nil && a.ended.Result.Root != ended.Result.Root {
		w.t.Errorf("%s: two roots, %s and %s", a.when, a.ended.Result.Root, ended.Result.Root)
	}
	a.ended = &ended
	silent, _, _, err := w.workflows.Start(ctx, red, beginning("silent"))
	if err != nil {
		return
	}
	a.silent = silent.ID
	w.Pass(time.Hour)
	_ = w.workflows.Sweep(ctx) // the next one continues
}

func (a *answers) keep(w *world, list []workflow.Step, recorded []workflow.Recorded) {
	w.t.Helper()
	if a.recorded == nil {
		a.recorded = map[string]workflow.Recorded{}
	}
	for i, r := range recorded {
		before, known := a.recorded[list[i].Key]
		if known && (before.Hash != r.Hash || before.Index != r.Index || before.Event != r.Event) {
			w.t.Errorf("%s: %s was told as %+v and as %+v", a.when, list[i].Key, before, r)
		}
		a.recorded[list[i].Key] = r
	}
}

func (a *answers) check(w *world) {
	w.t.Helper()
	if a.ended == nil || a.silent == "" {
		w.t.Fatalf("%s: the way had no end", a.when)
	}
	w.Pass(2 * time.Hour) // also for entries that a crash left only in the index
	for range 2 {
		w.sweep()
	}
	want := []string{"started by ik_1", "succeeded by ik_1", "started by ik_1", "abandoned by operator"}
	if got := w.runs(red); !slices.Equal(got, want) {
		w.t.Errorf("%s: ledger: got %q, want %q", a.when, got, want)
	}
	got, _ := w.get(red, a.run)
	if got.Result.Root != a.ended.Result.Root || got.Result.Recorded != 3 || len(w.steps(red)) != 3 {
		w.t.Errorf("%s: got %+v, %d steps", a.when, got.Result, len(w.steps(red)))
	}
	w.checkRoot(red, got)
	if silent, _ := w.get(red, a.silent); silent.Status != workflow.Abandoned || silent.EndedAt == 0 {
		w.t.Errorf("%s: silent: got %+v", a.when, silent)
	}
	if all := w.dues(); len(all) != 0 {
		w.t.Errorf("%s: due: got %v, want none", a.when, all)
	}
	if tally, err := w.Engine.Get(w.t.Context(), red, "run_tally", ""); err != nil || !strings.HasPrefix(string(tally.Value), `{"running":0,`) {
		w.t.Errorf("%s: tally %s, %v", a.when, tally.Value, err)
	}
}
