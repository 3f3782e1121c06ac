package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"github.com/agentledger/agentledger/storage"
)

// brokenError is the error that broke an engine. It wraps storage.ErrBroken and the cause.
type brokenError struct{ cause error }

func (b *brokenError) Error() string   { return fmt.Sprintf("%v: %v", storage.ErrBroken, b.cause) }
func (b *brokenError) Unwrap() []error { return []error{storage.ErrBroken, b.cause} }

// breakEngine breaks the engine and returns the error for callers. Only the first cause is kept.
func (e *Engine) breakEngine(cause error) error {
	b := &brokenError{cause}
	if !e.broken.CompareAndSwap(nil, b) {
		return e.broken.Load()
	}
	if e.onBroken != nil {
		e.onBroken(b)
	}
	return b
}

// brokenCause returns nil unless the engine is broken.
func (e *Engine) brokenCause() error {
	if b := e.broken.Load(); b != nil {
		return b
	}
	return nil
}

// errClosed is returned by every call after Close.
var errClosed = fmt.Errorf("store is closed: %w", storage.ErrUnavailable)

// beginCall starts a call, which must end with endCall.
func (e *Engine) beginCall(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := e.brokenCause(); err != nil {
		return err
	}
	if !e.calls.Begin() {
		return errClosed
	}
	return nil
}

func (e *Engine) endCall() { e.calls.End() }

// logger passes Pebble's messages to slog and its fatal errors to the engine.
//
// Pebble v2.1.7 has three ways to fail. A failed log write or sync is reported to all calls that wait for it, now and
// later (commit.waitDurable). A failure during a commit or a change to a new log file is a panic or Fatalf inside the
// call (Engine.applyBatch); if Pebble has released its own mutex, it aborts the process. A failed manifest write in the
// background is Fatalf, which must not return.
type logger struct {
	engine *Engine
	slog   *slog.Logger
	flush  error // of the last flush; the events below are called under Pebble's mutex
}

func (l *logger) Infof(format string, args ...any) { l.slog.Debug(fmt.Sprintf(format, args...)) }
func (l *logger) Errorf(format string, args ...any) {
	l.slog.Error("store: error", "error", fmt.Sprintf(format, args...))
}

// Fatalf breaks the engine and panics. Engine.applyBatch recovers the panic.
func (l *logger) Fatalf(format string, args ...any) {
	err := l.engine.breakEngine(fmt.Errorf(format, args...))
	l.slog.Error("store is broken", "error", err)
	panic(err)
}

// events replaces Pebble's default of ending the process when a read finds damage: the read returns ErrCorrupt, and the
// caller decides. A log file that cannot be created breaks the engine before Pebble panics. Pebble retries a failed
// flush indefinitely, because space may become free. While the store is being opened, though, no call would ever report
// the failure, so then it breaks the engine.
func (l *logger) events() *pebble.EventListener {
	return &pebble.EventListener{
		FlushEnd: func(info pebble.FlushInfo) { l.flush = info.Err },
		BackgroundError: func(err error) {
			l.slog.Error("store: background job", "error", readError(err), "remedy", remedy(err))
			l.engine.failures.noteFailure()
			if l.flush != nil && errors.Is(err, l.flush) && !l.engine.opened.Load() {
				l.Fatalf("flush: %w", err)
			}
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			l.slog.Error("store: damaged data", "file", info.Path, "error", readError(info.Details),
				"remedy", remedy(info.Details))
		},
		DiskSlow: func(info pebble.DiskSlowInfo) { l.slog.Warn("store: slow disk", "info", info.String()) },
		WALCreated: func(info pebble.WALCreateInfo) {
			if info.Err != nil {
				l.slog.Error("store is broken", "error", l.engine.breakEngine(info.Err))
			}
			l.engine.recent.created(info)
		},
		WALDeleted: l.engine.recent.deleted,
	}
}

// remedy returns what the operator can do about a Pebble error in a running store.
func remedy(err error) string {
	switch {
	case pebble.IsCorruptionError(err):
		return "stop the service, run agentledger fsck, and restore the file from a copy of this store or restore a verified backup"
	case errors.Is(err, syscall.ENOSPC):
		return "free space on the volume of the store; the job is retried"
	}
	return "the job is retried; if the error persists, check the volume of the store"
}
