package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/agentledger/agentledger/id"
)

// many measures what many organizations with a few events each come to: how fast
// they are made and written to, what they take, and how long it takes to open the
// store and to find one of them.
func (s *suite) many(ctx context.Context) error {
	return s.each(ctx, func(c contestant) error { return s.manyOn(ctx, c) })
}

func (s *suite) manyOn(ctx context.Context, c contestant) error {
	name, l, err := s.fillMany(ctx, c)
	if err != nil {
		return err
	}
	bytes, err := c.size(l)
	if err != nil {
		return err
	}
	sizes := []value{{float64(bytes) / float64(s.Many), "B/org"}, {float64(bytes) / (1 << 30), "GiB"}}
	if c.indexes != nil {
		if bytes, err = c.indexes(); err != nil {
			return err
		}
		sizes = append(sizes, value{float64(bytes) / float64(s.Many), "index-B/org"})
	}
	s.emit(name+"/size", s.Many, sizes...)
	return s.readMany(ctx, name, c)
}

// fillMany makes the organizations and their events. It returns the begin of the names of results.
func (s *suite) fillMany(ctx context.Context, c contestant) (name string, l *ledgers, err error) {
	const each, senders = 10, 256
	name = fmt.Sprintf("many/%s/organizations=%d/events=%d", c.name, s.Many, each)
	began := time.Now()
	if l, err = s.withLedgers(ctx, c, s.Many); err != nil {
		return "", nil, err
	}
	s.emit(name+"/found", s.Many, value{float64(s.Many) / time.Since(began).Seconds(), "organizations/s"})
	payload := newProse()
	r, err := closedLoop(senders, loopLimit{Time: 4 * time.Hour, Count: s.Many}, func(int) (step, error) {
		return func(n int) error { return l.addAll(ctx, id.Tenant(1+n), n*each, each, payload) }, nil
	})
	if err != nil {
		return "", nil, errors.Join(err, l.Close())
	}
	s.emitLoad(name+"/append", r, each, "events/s")
	return name, l, nil
}

// readMany measures a store that is full, opened anew.
func (s *suite) readMany(ctx context.Context, name string, c contestant) error {
	began := time.Now()
	l, err := s.withLedgers(ctx, c, 0)
	if err != nil {
		return err
	}
	s.emit(name+"/open", s.Many, value{float64(time.Since(began).Milliseconds()), "ms"})
	for _, reading := range []struct {
		name string
		read func(id.Tenant) error
	}{
		{"head", func(t id.Tenant) error { _, err := l.store.Head(ctx, t); return err }},
		{"state", func(t id.Tenant) error { _, err := l.State(ctx, t); return err }}, // head, key, tree's edge, anchor
	} {
		r, err := closedLoop(8, s.limit(), func(worker int) (step, error) {
			random := rand.New(rand.NewPCG(8, uint64(worker)))
			return func(int) error { return reading.read(id.Tenant(1 + random.IntN(s.Many))) }, nil
		})
		if err != nil {
			return errors.Join(err, l.Close())
		}
		s.emitLoad(name+"/"+reading.name, r, 1, "reads/s")
	}
	return l.Close()
}
