package main

import (
	"context"
	"log/slog"
	"strings"
)

// connectionLog takes what http.Server says of connections. That is everyday and written
// at debug level, but for panics outside of all handlers that web.Edge has made (those
// it answers and logs itself): each has cost a client its answer.
type connectionLog struct{ slog.Handler }

// Enabled implements slog.Handler: what a line is shows when it is there.
func (connectionLog) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (l connectionLog) Handle(ctx context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "http: panic serving") {
		r.Level = slog.LevelError
	}
	if !l.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}
