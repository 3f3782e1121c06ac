package telemetry

import (
	"context"
	"errors"
	"log/slog"

	"github.com/agentledger/agentledger/fault"
)

// handOver lowers the level of lines about work that stopped because its organization moved to another node. That is
// normal and needs no operator: the new owner continues.
type handOver struct{ slog.Handler }

// NewHandOverHandler returns a handler that logs warnings and errors at level info if they were caused by a fault with
// the code not_owner.
func NewHandOverHandler(h slog.Handler) slog.Handler { return handOver{h} }

// Handle implements slog.Handler.
func (h handOver) Handle(ctx context.Context, r slog.Record) error {
	if r.Level > slog.LevelInfo {
		r.Attrs(func(a slog.Attr) bool {
			err, is := a.Value.Any().(error)
			if is && isNotOwner(err) {
				r.Level = slog.LevelInfo
			}
			return r.Level > slog.LevelInfo
		})
	}
	if !h.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h handOver) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handOver{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h handOver) WithGroup(name string) slog.Handler { return handOver{h.Handler.WithGroup(name)} }

// isNotOwner reports whether any fault in a chain has the code not_owner.
func isNotOwner(err error) bool {
	for f := (*fault.Error)(nil); errors.As(err, &f); err = f.Err {
		if f.Code == "not_owner" {
			return true
		}
	}
	return false
}
