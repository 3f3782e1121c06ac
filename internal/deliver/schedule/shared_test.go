package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// share is the set of organizations that one of several processes owns.
type share map[id.Tenant]bool

// sharedStore is the store of a process.
type sharedStore struct {
	storage.RecordStore
	share
}

func (s sharedStore) Owned(t id.Tenant) bool { return s.share[t] }

// sharedIndices returns the indices of processes that share a store.
func sharedIndices(shares ...share) (all []*schedule.Index) {
	store := storagetest.NewModel()
	for _, s := range shares {
		all = append(all, &schedule.Index{Records: sharedStore{store, s}, Kind: "things_due"})
	}
	return all
}

func sweep(t *testing.T, x *schedule.Index, now id.Instant, outcome schedule.Outcome) (got []string) {
	t.Helper()
	err := x.Sweep(t.Context(), at(now), seen(&got, func(schedule.Entry) schedule.Outcome { return outcome }))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestSweepLeavesEntriesOfOthers(t *testing.T) {
	red, blue := share{1: true}, share{2: true}
	all := sharedIndices(red, blue)
	for _, tenant := range []id.Tenant{1, 2} {
		note(t, all[0], schedule.Entry{At: 10, Tenant: tenant, Name: "first"}, schedule.Entry{At: 20, Tenant: tenant, Name: "second"})
	}
	for i, want := range [][]string{{"10/1/first", "20/1/second"}, {"10/2/first", "20/2/second"}} {
		if got := sweep(t, all[i], 30, schedule.Keep()); !slices.Equal(got, want) {
			t.Errorf("process %d: got %q, want %q", i, got, want)
		}
	}
	red[2], blue[2] = true, false // both know the places of organization 2 as empty, or as full
	if got := sweep(t, all[1], 2_000, schedule.Done()); len(got) != 0 {
		t.Errorf("got %q after the organization went to another process", got)
	}
	want := []string{"10/1/first", "20/1/second", "10/2/first", "20/2/second"}
	if got := sweep(t, all[0], 2_000, schedule.Done()); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := sweep(t, all[0], 4_000, schedule.Done()); len(got) != 0 {
		t.Errorf("got %q, which were done", got)
	}
}

// Organizations move between processes at any time, and sometimes belong to none or to two. Each entry is looked at
// within a second and a sweep of being owned.
func TestNoEntryIsLostBetweenProcesses(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 9))
		shares := []share{{}, {}, {}}
		all := sharedIndices(shares...)
		waiting := map[string]id.Tenant{}
		now := id.Instant(10_000)
		for step := range 60 {
			now += id.Instant(random.IntN(700))
			tenant := id.Tenant(1 + random.IntN(4))
			switch random.IntN(3) {
			case 0:
				e := schedule.Entry{At: now + id.Instant(random.IntN(2000)), Tenant: tenant, Name: fmt.Sprint("n", step)}
				note(t, all[random.IntN(3)], e)
				waiting[fmt.Sprintf("%d/%d/%s", e.At, e.Tenant, e.Name)] = tenant
			case 1:
				for _, s := range shares {
					s[tenant] = random.IntN(3) == 0
				}
			default:
				n, outcome := random.IntN(3), schedule.Done()
				if random.IntN(2) == 0 {
					outcome = schedule.Keep()
				}
				for _, name := range sweep(t, all[n], now, outcome) {
					if !shares[n][waiting[name]] {
						t.Fatalf("seed %d: process %d was shown %s", seed, n, name)
					}
					if outcome == schedule.Done() {
						delete(waiting, name)
					}
				}
			}
		}
		shares[0][1], shares[0][2], shares[1][3], shares[1][4] = true, true, true, true
		now += 2_500
		for _, x := range all {
			for _, name := range sweep(t, x, now, schedule.Done()) {
				delete(waiting, name)
			}
		}
		if len(waiting) > 0 {
			t.Fatalf("seed %d: %v were never shown", seed, waiting)
		}
	}
}
