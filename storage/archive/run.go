package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
)

const (
	retryPause = 30 * time.Second // before a retry after a failure
	lookPause  = 5 * time.Second  // between two checks for erasures of other processes
)

// passStretch is how long a pass processes tenants without a pause.
const passStretch = 10 * time.Millisecond

// Run archives old bundles, and removes erased envelopes from objects as erasures happen, until ctx ends. It must not
// be called concurrently.
func (e *Engine) Run(ctx context.Context) {
	if e.options.ReadOnly {
		return
	}
	next := time.Now()
	var noted time.Time // when noteDue was last called
	for ctx.Err() == nil {
		now := time.Now()
		if err := e.CheckOwner(ctx); err != nil {
			e.figures.fail("write")
			e.logFailure(ctx, err)
			if now.Sub(noted) >= e.options.Pass {
				noted = now
				e.noteDue(ctx)
			}
			_ = syncs.Sleep(ctx, retryPause)
			continue
		}
		if !now.Before(next) {
			next = now.Add(e.options.Pass)
			if err := e.Pass(ctx); err != nil {
				e.logFailure(ctx, err)
			}
		} else {
			if err := e.takeWaiting(ctx); err != nil {
				e.logFailure(ctx, err)
			}
			e.rewriteDirty(ctx)
		}
		e.awaitWork(ctx, time.Until(next))
	}
}

// awaitWork returns after an erasure, or when the next check is due.
func (e *Engine) awaitWork(ctx context.Context, untilPass time.Duration) {
	wake := e.wake
	pause := min(untilPass, e.options.look)
	if tenants, _ := e.waiting(); tenants > 0 { // they failed before
		wake, pause = nil, retryPause
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
}

// Pass removes erased envelopes from objects and moves bundles, for all tenants. After an error, it continues with the
// next tenant, and returns all errors.
func (e *Engine) Pass(ctx context.Context) error {
	if err := e.finishDrops(ctx); err != nil {
		return err // no tenant may be moved before that
	}
	var failed []error
	began := time.Now()
	for t, err := range e.inner.Tenants(ctx) {
		if err != nil {
			failed = append(failed, fmt.Errorf("archive: list tenants: %w", err))
			break
		}
		if worked := time.Since(began); worked >= passStretch {
			_ = e.rest(ctx, worked)
			began = time.Now()
		}
		if !e.options.Owns(t) {
			continue
		}
		if err := errors.Join(e.rewriteOne(ctx, t, time.Now()), e.Move(ctx, t)); err != nil {
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	e.figures.oldest.endPass()
	return errors.Join(failed...)
}

// noteDue records how long bundles have been due that cannot be moved, while the object store is not known to belong to
// this store. It skips a tenant that cannot be read.
func (e *Engine) noteDue(ctx context.Context) {
	began := time.Now()
	for t, err := range e.inner.Tenants(ctx) {
		if err != nil || ctx.Err() != nil {
			break
		}
		if worked := time.Since(began); worked >= passStretch {
			_ = e.rest(ctx, worked)
			began = time.Now()
		}
		if !e.options.Owns(t) {
			continue
		}
		reached, err := e.frontiers.Get(ctx, t, "")
		if err != nil {
			continue
		}
		if since, due, err := e.isDue(ctx, place{t, reached.Value.Next}); err == nil && due {
			e.figures.oldest.noteWaiting(since)
		}
	}
	e.figures.oldest.endPass()
}

// rewriteWoken calls rewriteDirty after an erasure, so that no erasure waits for the end of a long move.
func (e *Engine) rewriteWoken(ctx context.Context) {
	select {
	case <-e.wake:
		e.rewriteDirty(ctx)
	default:
	}
}

// rewriteDirty processes the tenants with erasures.
func (e *Engine) rewriteDirty(ctx context.Context) {
	for t, since := range e.takeDirty() {
		if err := e.rewriteOne(ctx, t, since); err != nil {
			e.logFailure(ctx, err)
		}
	}
}

// rewriteOne is RewriteErased, and schedules the tenant again after an error.
func (e *Engine) rewriteOne(ctx context.Context, t id.Tenant, since time.Time) error {
	err := e.RewriteErased(ctx, t)
	if err != nil {
		e.noteDirty(t, since)
	}
	return err
}

func (e *Engine) logFailure(ctx context.Context, err error) {
	if ctx.Err() == nil {
		e.options.Logger.Error("archive: a step failed and will be retried", "err", err)
	}
}
