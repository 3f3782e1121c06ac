package mail

import (
	"log/slog"
	"testing"
)

// SweepWhole begins what is due and waits for its end.
func SweepWhole(t testing.TB, o *Outbox, logger *slog.Logger) {
	t.Helper()
	for {
		if err := o.Sweep(t.Context(), logger); err != nil {
			t.Fatal(err)
		}
		o.group.Wait()
		select {
		case <-o.room:
		default:
			return
		}
	}
}
