package schedule_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// burdened counts the deleted keys that scans step over.
type burdened struct {
	storage.RecordStore
	deleted map[string]bool
	steps   int
}

func (s *burdened) Scan(ctx context.Context, t id.Tenant, kind storage.Kind, begin, end string, limit int) ([]storage.Record, error) {
	found, err := s.RecordStore.Scan(ctx, t, kind, begin, end, limit)
	last := end
	if len(found) == limit {
		last = found[limit-1].Key
	}
	for key := range s.deleted {
		if key >= begin && key < last {
			s.steps++
		}
	}
	return found, err
}

func (s *burdened) Write(ctx context.Context, t id.Tenant, changes []storage.Change) error {
	for _, c := range changes {
		if c.Value == nil {
			s.deleted[c.Key] = true
		}
	}
	return s.RecordStore.Write(ctx, t, changes)
}

// Senders have capacity for a few entries at a time, so a queue takes many sweeps. Their work does not grow with the
// number of finished entries.
func TestFinishedEntriesCostNothing(t *testing.T) {
	const many = 2000
	store := &burdened{RecordStore: storagetest.NewModel(), deleted: map[string]bool{}}
	x := &schedule.Index{Records: store, Kind: "due", Lane: laneOf}
	backlog(t, x, red, many/2, "a")
	backlog(t, x, red, many/2, "b")
	done := 0
	for sweeps := 0; done < many; sweeps++ {
		if sweeps > many {
			t.Fatalf("%d entries are done after %d sweeps", done, sweeps)
		}
		room := 4
		err := x.Sweep(t.Context(), at(many+10_000), func(context.Context, schedule.Entry) (schedule.Outcome, error) {
			if room--; room < 0 {
				return schedule.AllFull(), nil
			}
			done++
			return schedule.Done(), nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if store.steps > 10*many {
		t.Errorf("scans stepped over %d deleted entries, want %d at most", store.steps, 10*many)
	}
}

// Random entries of two organizations, before and after finished ones: none is missed, although scans remember where
// they found nothing.
func TestEntriesInGaps(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		x := &schedule.Index{Records: storagetest.NewModel(), Kind: "due", Lane: laneOf}
		waits := map[string]bool{}
		for step := range 200 {
			for range random.IntN(4) {
				e := schedule.Entry{At: id.Instant(random.IntN(1000)), Tenant: []id.Tenant{red, blue}[random.IntN(2)],
					Name: fmt.Sprintf("n%d/%c", step*10+random.IntN(10), 'a'+rune(random.IntN(3)))}
				note(t, x, e)
				waits[e.Key()] = true
			}
			room := random.IntN(12)
			err := x.Sweep(t.Context(), at(id.Instant(1000+step)), func(_ context.Context, e schedule.Entry) (schedule.Outcome, error) {
				e.Lane = ""
				if random.IntN(8) == 0 {
					return schedule.LaneFull(), nil
				}
				if room--; room < 0 {
					return schedule.AllFull(), nil
				}
				delete(waits, e.Key())
				return schedule.Done(), nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		var left []string
		err := x.Sweep(t.Context(), at(1500), func(_ context.Context, e schedule.Entry) (schedule.Outcome, error) {
			e.Lane = ""
			left = append(left, e.Key())
			return schedule.Done(), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(left)
		want := make([]string, 0, len(waits))
		for key := range waits {
			want = append(want, key)
		}
		slices.Sort(want)
		if !slices.Equal(left, want) {
			t.Fatalf("seed %d: got %q, want %q", seed, left, want)
		}
	}
}
