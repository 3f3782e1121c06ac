package syncs_test

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/internal/syncs"
)

func TestMeter(t *testing.T) {
	var m syncs.Meter
	ctx := syncs.WithMeter(t.Context(), &m)
	syncs.BeginStep(ctx, "copying", "bytes")
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			syncs.ExpectWork(ctx, 10)
			syncs.CountWork(ctx, 3)
		})
	}
	work.Wait()
	if _, err := io.Copy(io.Discard, syncs.MeteredReader(ctx, strings.NewReader("12345"))); err != nil {
		t.Fatal(err)
	}
	if got, want := m.Read(), (syncs.Progress{Step: 1, Doing: "copying", Units: "bytes", Done: 29, Total: 80}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	syncs.BeginStep(ctx, "verifying", "events")
	syncs.SetWork(ctx, 1, 2)
	if got, want := m.Read(), (syncs.Progress{Step: 2, Doing: "verifying", Units: "events", Done: 1, Total: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Without a meter in the context nothing happens.
func TestNoMeter(t *testing.T) {
	ctx := context.Background()
	syncs.BeginStep(ctx, "x", "y")
	syncs.CountWork(ctx, 1)
	if syncs.HasMeter(ctx) {
		t.Error("there is a meter")
	}
}
