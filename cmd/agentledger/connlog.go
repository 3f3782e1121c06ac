package main

import (
	"context"
	"log/slog"
	"strings"

	"github.com/agentledger/agentledger/internal/telemetry"
)

// connectionLog takes what http.Server says of connections. That is everyday and written
// at debug level, but for two things: panics outside of all handlers that web.Edge has
// made (those it answers and logs itself), each of which has cost a client its answer,
// and connections that can't be accepted, for example because no file can be opened.
type connectionLog struct{ slog.Handler }

// newConnectionLog writes to h, and leaves repetitions out.
func newConnectionLog(h slog.Handler) slog.Handler {
	return connectionLog{telemetry.NewRepeatHandler(h, func(r slog.Record) string {
		subject, _, _ := strings.Cut(strings.TrimPrefix(r.Message, "http: "), " ") // "panic", "Accept"
		return subject
	})}
}

// Enabled implements slog.Handler: what a line is shows when it is there.
func (connectionLog) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (l connectionLog) Handle(ctx context.Context, r slog.Record) error {
	switch {
	case strings.HasPrefix(r.Message, "http: panic serving"):
		r.Level = slog.LevelError
	case strings.HasPrefix(r.Message, "http: Accept error"):
		r.Level = slog.LevelWarn
	}
	if !l.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}
