package telemetry

import (
	"context"
	"log/slog"
	"strings"
)

// connectionLog takes the log lines of http.Server, which are everyday and written at debug level. Two
// kinds are not. A panic outside of the handlers of edge.Edge has cost a client its answer: it is an
// error. A connection that can't be accepted, for example because no file can be opened, is a warning.
type connectionLog struct{ slog.Handler }

// NewConnectionHandler returns the handler of a connectionLog that writes to h, and leaves repetitions out.
func NewConnectionHandler(h slog.Handler) slog.Handler {
	return connectionLog{NewRepeatHandler(h, func(r slog.Record) string {
		subject, _, _ := strings.Cut(strings.TrimPrefix(r.Message, "http: "), " ") // "panic", "Accept"
		return subject
	})}
}

// Enabled implements slog.Handler. Handle finds the level of a line by its text.
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
