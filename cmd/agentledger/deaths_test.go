package main

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// Approvals are requested, voted on, consumed and called back while the real server gets SIGKILL repeatedly, on both
// engines: what was acknowledged holds, each step is in the ledger once, and each callback arrives.
// TestDeathAtEachWrite of package approval covers the exact places of a crash.
func TestApprovalsUnderKills(t *testing.T) {
	t.Parallel()
	t.Run("pebble", func(t *testing.T) { approvalsUnderKills(t) })
	t.Run("postgres", func(t *testing.T) {
		s, err := pgtest.Start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Stop() })
		approvalsUnderKills(t, "--storage", s.URL())
	})
}

// deathRounds is the number of kills, deathWorkers the number of agents.
const (
	deathRounds  = 4
	deathWorkers = 6
)

// errand is one approval from request to grant, over all restarts of the server.
type errand struct {
	trace    string
	approval client.Approval
	voted    bool
	grants   map[string]bool
}

func approvalsUnderKills(t *testing.T, flags ...string) {
	callbacks := servicetest.NewCallbacks(t)
	flags = append(flags, "--callout-allow", "127.0.0.0/8")
	dir := t.TempDir()
	p := startProcess(t, dir, flags...)
	red := p.found(t.Context(), "red", nil)
	newRefunder(t, p, red).requireApproval(t)
	errands := make([][]*errand, deathWorkers) // the last one of each may be in progress
	for round := range deathRounds {
		r := newRefunder(t, p, red)
		r.once(t)
		over := make(chan struct{})
		var group sync.WaitGroup
		for n := range errands {
			group.Go(func() { errands[n] = r.errands(t, callbacks.URL, errands[n], n, over) })
		}
		time.Sleep(time.Duration(150+rand.IntN(400)) * time.Millisecond)
		p.kill()
		close(over)
		group.Wait()
		p = startProcess(t, dir, flags...)
		t.Logf("round %d: %d errands", round, len(errands[0]))
	}
	r := newRefunder(t, p, red)
	total := 0
	for _, own := range errands {
		for _, e := range own {
			total++
			if err := r.run(t, callbacks.URL, e); err != nil {
				t.Fatal(err)
			}
			if got, err := r.client.GetApproval(t.Context(), e.approval.ID); err != nil || got.Status != client.ApprovalConsumed || len(e.grants) != 1 {
				t.Errorf("%s: got %s, %v, and %d grants", e.trace, got.Status, err, len(e.grants))
			}
		}
	}
	awaitCallbacks(t, callbacks, errands)
	p.terminate()
	arguments := append([]string{"fsck", "--data", dir}, flags[:len(flags)-2]...)
	// The events are: activation, grant key, and for each errand: requested, approved, consumed.
	want := fmt.Sprintf("1 ledger, %d events, 0 faults", 2+3*total)
	if out, exit := command(t, "agentledger", arguments...); exit != 0 || !strings.Contains(out, want) {
		t.Errorf("fsck: status %d, %s, want %s", exit, out, want)
	}
}

// once makes the agent give up when the server is gone.
func (r *refunder) once(t *testing.T) {
	t.Helper()
	var err error
	r.client, err = client.New(client.Config{BaseURL: r.main, Token: r.org.IngestKey.Secret, Retry: once})
	if err != nil {
		t.Fatal(err)
	}
}

// errands runs one errand after the other until the server is gone, beginning with the unfinished one.
func (r *refunder) errands(t *testing.T, hook string, before []*errand, worker int, over <-chan struct{}) []*errand {
	if len(before) > 0 && r.run(t, hook, before[len(before)-1]) != nil {
		return before
	}
	for {
		select {
		case <-over:
			return before
		default:
		}
		e := &errand{trace: fmt.Sprintf("errand-%d-%d", worker, len(before)), grants: map[string]bool{}}
		before = append(before, e)
		if r.run(t, hook, e) != nil {
			return before
		}
	}
}

// run continues an errand. Its error means that the server is gone.
func (r *refunder) run(t *testing.T, hook string, e *errand) error {
	if e.approval.ID == "" {
		q := r.question()
		q.Trace, q.Callback = id.Trace(e.trace), hook
		approval, err := r.client.AskApproval(t.Context(), q)
		if err != nil {
			return err
		}
		e.approval = approval
	}
	if !e.voted {
		if err := r.vote(t, e.approval, "approve"); err != nil && !strings.Contains(err.Error(), ": 409 ") {
			return err
		}
		e.voted = true
	}
	grant, err := r.client.ConsumeApproval(t.Context(), r.signer, e.approval)
	if err != nil {
		return err
	}
	e.grants[grant] = true
	return nil
}

// awaitCallbacks waits until each errand's two changes were delivered, each as one message.
func awaitCallbacks(t *testing.T, c *servicetest.Callbacks, errands [][]*errand) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		var missing error
		for _, e := range slices.Concat(errands...) {
			missing = cmp.Or(missing, c.CheckConsumed(e.approval.ID))
		}
		if missing == nil || time.Now().After(end) {
			if err := errors.Join(missing, c.CheckOnce()); err != nil {
				t.Error(err)
			}
			return
		}
	}
}
