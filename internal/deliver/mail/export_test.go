package mail

import (
	"context"
	"log/slog"
	"testing"
)

// SweepWhole starts what is due and waits until it has ended.
func SweepWhole(t testing.TB, o *Outbox, logger *slog.Logger) {
	t.Helper()
	for due := 1; due > 0; {
		if err := o.Sweep(t.Context(), logger); err != nil {
			t.Fatal(err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		o.Run(ended, logger) // returns when no message is in flight
		var err error
		if due, err = o.due.CountDue(t.Context(), o.currentTime(), 1); err != nil {
			t.Fatal(err)
		}
	}
}
