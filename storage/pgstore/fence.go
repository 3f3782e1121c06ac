package pgstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pgstore/schema"
)

const (
	// fenceEvery is the interval between checks of the lowest schema of programs that may write.
	fenceEvery = time.Second
	// fenceAge is the age of the last check at which a write checks again before it starts. It is shorter than the
	// grace time of package schema, with some time for the write itself.
	fenceAge = 2 * time.Second
	// fenceTime bounds a check.
	fenceTime = time.Second
)

// fence stops a program from using a database that accepts only newer programs. Its methods may be called concurrently.
type fence struct {
	program   *schema.Program
	known     int64
	pool      *pgxpool.Pool
	outdated  func(error)
	began     time.Time
	checkedAt atomic.Int64 // time since began
	refused   atomic.Pointer[error]
	stop      context.CancelFunc
	stopped   chan struct{}
}

// newFence returns the fence of a program that was just admitted. It checks regularly until close.
func newFence(p *schema.Program, pool *pgxpool.Pool, outdated func(error)) *fence {
	ctx, stop := context.WithCancel(context.Background())
	f := &fence{program: p, known: p.Newest(), pool: pool, outdated: outdated, began: time.Now(),
		stop: stop, stopped: make(chan struct{})}
	go f.run(ctx)
	return f
}

func (f *fence) close() {
	f.stop()
	<-f.stopped
}

func (f *fence) run(ctx context.Context) {
	defer close(f.stopped)
	tick := time.NewTicker(fenceEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		f.check(ctx)
	}
}

// refusal returns the reason why the program may no longer use the database, or nil.
func (f *fence) refusal() error {
	if err := f.refused.Load(); err != nil {
		return *err
	}
	return nil
}

// pass returns an error if a write may not start. A process that was suspended checks again first. A server that does
// not respond is no reason to reject the write, which uses the same server.
func (f *fence) pass(ctx context.Context) error {
	if time.Since(f.began)-time.Duration(f.checkedAt.Load()) >= fenceAge {
		f.check(ctx)
	}
	return f.refusal()
}

// check asks the database whether the program may still use it.
func (f *fence) check(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, fenceTime)
	defer cancel()
	begin := time.Since(f.began)
	err := f.program.Ask(ctx, f.pool)
	switch {
	case err == nil:
		f.checkedAt.Store(int64(begin))
	case errors.Is(err, schema.ErrRefused):
		f.refuse(err)
	}
}

// refuse rejects all calls from now on.
func (f *fence) refuse(err error) {
	refusal := fmt.Errorf("%w: %w", storage.ErrUnavailable, err)
	if f.refused.CompareAndSwap(nil, &refusal) && f.outdated != nil {
		f.outdated(err)
	}
}

// explain replaces ErrConflict in the results of parts by the refusal, if the program is too old. Otherwise their
// ledgers would retry forever, because the head never changes.
func (f *fence) explain(parts ...[]part) {
	checked := false
	for _, some := range parts {
		for _, p := range some {
			if !errors.Is(*p.result, storage.ErrConflict) {
				continue
			}
			if !checked {
				f.check(context.Background()) // without a response, it remains a conflict
				checked = true
			}
			if err := f.refusal(); err != nil {
				p.answer(err)
			}
		}
	}
}
