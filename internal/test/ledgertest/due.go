package ledgertest

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/storage"
)

// RunUntilDone runs a worker for the due entries of a kind until none is due. It fails the test after a minute. A
// worker removes an entry once its work is done (package schedule).
func RunUntilDone(
	t testing.TB, records storage.RecordStore, kind storage.Kind, clock func() time.Time,
	run func(context.Context, *slog.Logger),
) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var running sync.WaitGroup
	running.Go(func() { run(ctx, slog.New(slog.NewTextHandler(t.Output(), nil))) })
	defer running.Wait()
	index := schedule.Index{Records: records, Kind: kind}
	for ctx.Err() == nil {
		due := false
		for e, err := range index.Entries(ctx) {
			due = due || err != nil || e.At <= id.InstantOf(clock())
		}
		if !due {
			stop()
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("entries of %s are still due", kind)
}
