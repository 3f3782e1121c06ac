package pgstore

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

var errAway = errors.New("the database is away")

// slow is a database whose statements wait, and then fail. It records how many tenants each statement is about.
type slow struct {
	goOn    chan struct{}
	tenants chan int
}

func (s slow) Query(_ context.Context, sql string, args ...any) (pgx.Rows, error) {
	n := 1
	if sql == findSQL {
		n = len(args[0].([]int64))
	}
	s.tenants <- n
	<-s.goOn
	return nil, errAway
}

// Two statements are in flight at a time. Waiting lookups share the next one, except for callers that have left.
func TestWaitingLookupsShareAStatement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		database := slow{goOn: make(chan struct{}), tenants: make(chan int, 10)}
		f, ended := newFinder(database), make(chan error, 10)
		leaving, leave := context.WithCancel(t.Context())
		find := func(ctx context.Context, tenant id.Tenant) {
			go func() {
				_, err := f.Find(ctx, tenant, []storage.DedupKey{{Text: "evt"}})
				ended <- err
			}()
			synctest.Wait()
		}
		const red, blue, green = 1, 2, 3
		for _, tenant := range []id.Tenant{red, blue, red, blue} {
			find(t.Context(), tenant)
		}
		find(leaving, green)
		leave()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that leaves: got %v", err)
		}
		close(database.goOn)
		for range 4 {
			if err := <-ended; !errors.Is(err, errAway) {
				t.Errorf("got %v, want %v", err, errAway)
			}
		}
		synctest.Wait()
		close(database.tenants)
		var got []int
		for n := range database.tenants {
			got = append(got, n)
		}
		if want := []int{1, 1, 2}; !slices.Equal(got, want) {
			t.Errorf("statements are about %v tenants, want %v", got, want)
		}
	})
}
