package telemetry

import (
	"context"
	"log/slog"
	"strings"
)

// connectionLog receives the log lines of http.Server. Most are routine and are written at debug level, with two
// exceptions. A panic outside of the handlers of edge.Edge cost a client its response: it is an error. A connection that
// cannot be accepted, for example because no file can be opened, is a warning.
type connectionLog struct{ slog.Handler }

// NewConnectionHandler returns the handler for the log of an http.Server. It writes to h and suppresses repetitions.
func NewConnectionHandler(h slog.Handler) slog.Handler {
	return connectionLog{newRepeatHandler(h, func(r slog.Record) string {
		subject, _, _ := strings.Cut(strings.TrimPrefix(r.Message, "http: "), " ") // "panic", "Accept"
		return subject
	})}
}

// Enabled implements slog.Handler. Handle determines the level of a line from its text.
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
