package transfer_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// run starts a run of an automation tool.
func (r *resident) run(external string) workflow.Run {
	r.t.Helper()
	run, _, _, err := r.workflows.Start(r.t.Context(), r.Tenant, workflow.Beginning{
		Workflow: workflow.Flow{Name: "invoices"}, External: external, IngestKeyID: r.IngestKey.ID,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return run
}

func (r *resident) step(run workflow.Run, key string) error {
	_, err := r.workflows.Record(r.t.Context(), r.Tenant, r.IngestKey.ID, run.ID, []workflow.Step{{Key: key, Attempt: 1, Status: "succeeded"}})
	return err
}

// dues returns the due times of runs by name.
func (h *house) dues() map[string]id.Instant {
	h.t.Helper()
	records, err := h.engine.Scan(h.t.Context(), id.Service, "run_due", "", "", 100)
	if err != nil {
		h.t.Fatal(err)
	}
	all := map[string]id.Instant{}
	for _, r := range records {
		e, err := schedule.ParseEntry(r.Key)
		if err != nil {
			h.t.Fatal(err)
		}
		all[e.Name] = e.At
	}
	return all
}

// A run continues where its organization moves to, under the same bridge key. If it falls silent there, it is
// abandoned.
func TestRunsMove(t *testing.T) {
	for name, engine := range map[string]func(testing.TB) storagetest.Engine{"pebble": pebble, "postgres": postgres} {
		t.Run(name, func(t *testing.T) {
			here := newHouse(t, engine(t), newKeyring(t))
			here.start()
			red := here.found("red", "ann@example.com", 1)
			goesOn, silent, ended := red.run("1"), red.run("2"), red.run("3")
			here.now = here.now.Add(30 * time.Minute)
			for _, run := range []workflow.Run{goesOn, silent, ended} {
				if err := red.step(run, "a"); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := here.workflows.Complete(t.Context(), red.Tenant, red.IngestKey.ID, ended.ID, workflow.Ending{Status: workflow.Aborted}); err != nil {
				t.Fatal(err)
			}
			here.stop()
			there := newHouse(t, model(t), here.keyring)
			export := filepath.Join(t.TempDir(), "export")
			here.export(export, "")
			there.imports(export, "")
			want := id.InstantOf(here.now.Add(time.Hour))
			if got := there.dues(); len(got) != 2 || got[string(goesOn.ID)] != want || got[string(silent.ID)] != want {
				t.Errorf("due: got %v, want both at %d", got, want)
			}
			there.fsck()
			there.now = here.now
			there.start()
			moved := red.at(there)
			if again := moved.run("1"); again.ID != goesOn.ID {
				t.Errorf("started again: got %s, want %s", again.ID, goesOn.ID)
			}
			there.now = there.now.Add(59 * time.Minute)
			if err := moved.step(goesOn, "b"); err != nil {
				t.Error(err)
			}
			there.now = there.now.Add(time.Minute)
			if err := there.workflows.Sweep(t.Context()); err != nil {
				t.Error(err)
			}
			for run, want := range map[workflow.ID]workflow.Status{goesOn.ID: workflow.Running, silent.ID: workflow.Abandoned, ended.ID: workflow.Aborted} {
				got, _, _, err := there.workflows.Get(t.Context(), red.Tenant, red.IngestKey.ID, run, 0, 10)
				if err != nil || got.Status != want || got.EndedAt == 0 != (want == workflow.Running) {
					t.Errorf("got %+v, %v; want %s", got, err, want)
				}
			}
			there.stop()
			there.fsck()
		})
	}
}

// Runs belong to the log that they began in. If it is frozen, nobody retries to end them, and the log that succeeds it
// begins without any.
func TestRunsOfAFrozenLog(t *testing.T) {
	h := newHouse(t, pebble(t), newKeyring(t))
	h.start()
	red, blue := h.found("red", "ann@example.com", 5), h.found("blue", "ann@example.com", 6)
	run, other := red.run("1"), blue.run("1")
	if err := red.step(run, "a"); err != nil {
		t.Fatal(err)
	}
	h.freeze(red)
	h.now = h.now.Add(time.Hour)
	if err := h.workflows.Sweep(t.Context()); err != nil {
		t.Errorf("sweep: %v", err)
	}
	if err := h.workflows.Sweep(t.Context()); err != nil {
		t.Errorf("sweep again: %v", err)
	}
	if got := h.dues(); len(got) != 1 || got[string(run.ID)] != id.InstantOf(h.now.Add(time.Hour)) {
		t.Errorf("due: got %v, want the frozen one's an hour later", got)
	}
	if got, _, _, err := h.workflows.Get(t.Context(), blue.Tenant, blue.IngestKey.ID, other.ID, 0, 10); err != nil || got.Status != workflow.Abandoned || got.EndedAt == 0 {
		t.Errorf("the other organization's: got %+v, %v", got, err)
	}
	h.stop()
	if _, err := h.succession("red", "a test of it", nil); err != nil {
		t.Fatal(err)
	}
	h.start()
	now := red.succeeded()
	_, _, _, err := h.workflows.Get(t.Context(), now.Tenant, now.IngestKey.ID, run.ID, 0, 10)
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("a run of the log before: got %v", err)
	}
	again := now.run("1")
	if again.ID == run.ID || again.Agent != run.Agent {
		t.Errorf("started again: got %+v, want another run of the same bridge agent %s", again, run.Agent)
	}
	if err := now.step(again, "a"); err != nil {
		t.Error(err)
	}
	if _, err := h.workflows.Complete(t.Context(), now.Tenant, now.IngestKey.ID, again.ID, workflow.Ending{Status: workflow.Succeeded}); err != nil {
		t.Error(err)
	}
	h.stop()
	h.fsck()
}
