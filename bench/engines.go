package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
)

// contestant is a storage engine on an empty store.
type contestant struct {
	name  string
	flags []string // of a server that uses it
	open  func() (storage.Engine, error)
	size  func(*ledgers) (int64, error) // closes the ledgers; bytes once the store has come to rest
	drop  func() error
}

// contestants creates an empty store of each engine.
func (s *suite) contestants(ctx context.Context) (all []contestant, err error) {
	dir, remove, err := s.folder()
	if err != nil {
		return nil, err
	}
	all = append(all, contestant{
		name: "pebble",
		open: func() (storage.Engine, error) {
			return pebblestore.Open(pebblestore.Options{Dir: filepath.Join(dir, "db")})
		},
		size: func(l *ledgers) (int64, error) {
			if err := l.Close(); err != nil {
				return 0, err
			}
			return s.rested(ctx, dir)
		},
		drop: func() error { remove(); return nil },
	})
	d, err := s.postgres()
	if err != nil {
		return nil, err
	}
	st, err := d.fresh()
	if err != nil {
		return nil, err
	}
	return append(all, contestant{
		name:  "postgres",
		flags: []string{"--storage", st.url},
		open:  func() (storage.Engine, error) { return st.open(ctx) },
		size: func(l *ledgers) (int64, error) {
			if err := errors.Join(l.Close(), st.rest(ctx)); err != nil {
				return 0, err
			}
			return st.number(ctx, allTables)
		},
		drop: st.drop,
	}), nil
}

// each calls f with every contestant.
func (s *suite) each(ctx context.Context, f func(contestant) error) error {
	all, err := s.contestants(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		if err := errors.Join(f(c), c.drop()); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// engines measures both storage engines under the same work: in process, where an event costs little else, and over HTTP, as
// agents use it.
func (s *suite) engines(ctx context.Context) error {
	for _, w := range crews() {
		if err := s.each(ctx, func(c contestant) error { return s.engineAppends(ctx, c, w) }); err != nil {
			return err
		}
	}
	if err := s.each(ctx, func(c contestant) error { return s.engineReads(ctx, c) }); err != nil {
		return err
	}
	return s.each(ctx, func(c contestant) error { return s.engineHTTP(ctx, c) })
}

// crew is a group of senders in this process, each of which appends a number of events of one organization together.
type crew struct{ senders, organizations, together int }

func crews() []crew {
	return []crew{{1, 1, 1}, {64, 1, 1}, {256, 1, 1}, {256, 200, 1}, {8, 1, 64}, {16, 200, 64}}
}

// withLedgers opens ledgers with n organizations on the store of a contestant.
func (s *suite) withLedgers(ctx context.Context, c contestant, n int) (*ledgers, error) {
	dir, _, err := s.folder() // removed with the suite's
	if err != nil {
		return nil, err
	}
	store, err := c.open()
	if err != nil {
		return nil, err
	}
	l, err := openLedgersOn(ctx, store, dir, s.key.key)
	if err != nil {
		return nil, err
	}
	if err := l.found(ctx, n); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (s *suite) engineAppends(ctx context.Context, c contestant, w crew) error {
	l, err := s.withLedgers(ctx, c, w.organizations)
	if err != nil {
		return err
	}
	payload := newProse()
	meter := s.meter(os.Getpid())
	r, err := closedLoop(w.senders, s.limit(), func(int) (step, error) {
		return func(n int) error {
			return l.addAll(ctx, id.Tenant(1+n%w.organizations), n*w.together, w.together, payload)
		}, nil
	})
	if err := errors.Join(err, l.Close()); err != nil {
		return err
	}
	s.emitLoad(fmt.Sprintf("engines/append/%s/senders=%d/organizations=%d/together=%d", c.name, w.senders, w.organizations, w.together),
		r, w.together, "events/s", meter.each(r.Done*w.together)...)
	return nil
}

// prose is a text of which each event gets a different piece, because identical events would compress too well.
type prose string

func newProse() prose { return prose(text(rand.New(rand.NewPCG(1, 1)), 1<<20)) }

// piece returns the piece for event n.
func (p prose) piece(n int) string {
	begin := n * 7919 % (len(p) - entrySize + 1)
	return string(p[begin : begin+entrySize])
}

// addAll appends n events, named by their numbers, as the lines of one request do.
func (l *ledgers) addAll(ctx context.Context, t id.Tenant, first, n int, payload prose) error {
	prepares := make([]log.Prepare, n)
	for i := range prepares {
		name := fmt.Sprint("e", first+i)
		prepares[i] = func(_ context.Context, s *log.State) (log.Submission, error) {
			return log.Submission{Drafts: []log.Draft{draft(s.Identity(), "agt_bench", "key_bench", benchKey, name, entry(name, payload.piece(first+i)))}}, nil
		}
	}
	for _, o := range l.AppendAll(ctx, t, prepares) {
		if o.Err != nil {
			return o.Err
		}
	}
	return nil
}

// engineHTTP measures a server on a contestant's store: single events, then batches over four connections, which are
// what the queue accepts of one organization.
func (s *suite) engineHTTP(ctx context.Context, c contestant) error {
	return s.serving(ctx, func(v *service, m *member) error {
		for _, load := range []struct {
			connections int
			events      lines
		}{{64, 1}, {4, 64}, {4, 1000}} {
			n := s.requests(atMost(load.connections))
			if load.events > 1 {
				n = 4 * s.requests(atMost(64)) / int(load.events)
			}
			requests, err := load.events.posts(fmt.Sprint("lines", int(load.events)), n, always(m))
			if err != nil {
				return err
			}
			meter, l := s.meter(v.cmd.Process.Pid), s.limit()
			l.Time, l.Count = 2*l.Time, len(requests) // full batches are few
			r, err := closedLoop(load.connections, l, func(int) (step, error) {
				c, err := dialConn(v.url())
				return func(n int) error { return load.events.send(c, requests[n]) }, err
			})
			if err != nil {
				return err
			}
			s.emitLoad(fmt.Sprintf("engines/http/%s/connections=%d/lines=%d", c.name, load.connections, load.events), r,
				int(load.events), "events/s", meter.each(r.Done*int(load.events))...)
		}
		return nil
	}, c.flags...)
}
