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
	// fenceEvery is the time between two looks at the lowest schema of programs that may write.
	fenceEvery = time.Second
	// fenceAge is the age of a look from which on a write looks before it begins. It is shorter than the grace time of
	// package schema, with room for the write.
	fenceAge = 2 * time.Second
	// fenceTime bounds a look.
	fenceTime = time.Second
)

// fence keeps a program from a database that takes newer programs only. Its methods may be called concurrently.
type fence struct {
	program  *schema.Program
	known    int64
	pool     *pgxpool.Pool
	outdated func(error)
	began    time.Time
	lookedAt atomic.Int64 // time since began
	refused  atomic.Pointer[error]
	stop     context.CancelFunc
	stopped  chan struct{}
}

// newFence returns the fence of a program that was admitted just now, which looks until close.
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
		f.look(ctx)
	}
}

// refusal returns why the program may do nothing any more, or nil.
func (f *fence) refusal() error {
	if err := f.refused.Load(); err != nil {
		return *err
	}
	return nil
}

// pass returns an error if a write may not begin. A process that stood still asks before. A server that does not answer
// is no reason to refuse, because the write meets the same server.
func (f *fence) pass(ctx context.Context) error {
	if time.Since(f.began)-time.Duration(f.lookedAt.Load()) >= fenceAge {
		f.look(ctx)
	}
	return f.refusal()
}

// look asks the database whether the program may go on.
func (f *fence) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, fenceTime)
	defer cancel()
	begin := time.Since(f.began)
	err := f.program.Ask(ctx, f.pool)
	switch {
	case err == nil:
		f.lookedAt.Store(int64(begin))
	case errors.Is(err, schema.ErrRefused):
		f.refuse(err)
	}
}

// refuse refuses all calls from now on.
func (f *fence) refuse(err error) {
	refusal := fmt.Errorf("%w: %w", storage.ErrUnavailable, err)
	if f.refused.CompareAndSwap(nil, &refusal) && f.outdated != nil {
		f.outdated(err)
	}
}

// explain replaces the conflicts among the answers of parts by the refusal, if the program is too old. Otherwise their
// ledgers would read the head again and again, which stands where it was.
func (f *fence) explain(parts ...[]part) {
	looked := false
	for _, some := range parts {
		for _, p := range some {
			if !errors.Is(*p.result, storage.ErrConflict) {
				continue
			}
			if !looked {
				f.look(context.Background()) // without an answer it stays a conflict
				looked = true
			}
			if err := f.refusal(); err != nil {
				p.answer(err)
			}
		}
	}
}
