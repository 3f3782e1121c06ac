package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"

	"github.com/agentledger/agentledger/id"
)

// spread is the distribution of events over organizations.
type spread struct {
	organizations int
	zipf          bool // a few organizations get most events
}

func spreads() []spread {
	return []spread{{1, false}, {200, false}, {200, true}, {1000, false}, {1000, true}}
}

// mostOrganizations is the largest number of spreads.
const mostOrganizations = 1000

// String returns the spread as part of a benchmark's name.
func (s spread) String() string {
	kind := "uniform"
	if s.zipf {
		kind = "zipf"
	}
	return fmt.Sprintf("count=%d/spread=%s", s.organizations, kind)
}

// zipfExponent makes the first of 1,000 organizations get a seventh of all.
const zipfExponent = 1.1

// picks returns the organizations of many events, as numbers from 0.
func (s spread) picks() []int {
	r := rand.New(rand.NewPCG(4, uint64(s.organizations)))
	picks := make([]int, 1<<16)
	zipf := rand.NewZipf(r, zipfExponent, 1, uint64(s.organizations-1))
	for i := range picks {
		picks[i] = r.IntN(s.organizations)
		if s.zipf {
			picks[i] = int(zipf.Uint64())
		}
	}
	return picks
}

// organizations measures the cost of events of many organizations, in process and over HTTP. All organizations exist in
// each measurement.
func (s *suite) organizations(ctx context.Context) error {
	if err := s.organizationsInProcess(ctx); err != nil {
		return fmt.Errorf("in process: %w", err)
	}
	if s.crowd == nil {
		var err error
		if s.crowd, err = s.gather(ctx); err != nil {
			return err
		}
	}
	for _, spread := range spreads() {
		if err := s.crowd.ingest(s, spread); err != nil {
			return fmt.Errorf("over HTTP: %w", err)
		}
	}
	return nil
}

func (s *suite) organizationsInProcess(ctx context.Context) (err error) {
	const senders = 256
	dir, remove, err := s.folder()
	if err != nil {
		return err
	}
	defer remove()
	l, err := openLedgers(ctx, dir, s.key.key, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if err := l.found(ctx, mostOrganizations); err != nil {
		return err
	}
	payload := text(rand.New(rand.NewPCG(1, 1)), entrySize)
	for _, spread := range spreads() {
		picks := spread.picks()
		r, err := closedLoop(senders, s.limit(), func(int) (step, error) {
			return func(n int) error {
				t := id.Tenant(1 + picks[n%len(picks)])
				_, err := l.add(ctx, t, fmt.Sprint(spread, n), payload)
				return err
			}, nil
		})
		if err != nil {
			return err
		}
		s.emitLoad("organizations/in-process/"+spread.String(), r, 1, "events/s")
	}
	return nil
}

// crowd is a server with many organizations. Creating them takes longer than a round, so all rounds share one.
type crowd struct {
	service *service
	members []*member
	round   int // event ids differ by round
}

func (s *suite) gather(ctx context.Context) (*crowd, error) {
	dir, _, err := s.folder() // removed with the suite's
	if err != nil {
		return nil, err
	}
	v, err := s.serve(dir)
	if err != nil {
		return nil, err
	}
	members, err := v.foundMany(ctx, mostOrganizations)
	if err != nil {
		return nil, errors.Join(err, v.stop())
	}
	return &crowd{service: v, members: members}, nil
}

func (c *crowd) ingest(s *suite, spread spread) error {
	const connections = 64
	picks := spread.picks()
	c.round++
	requests, err := posts(fmt.Sprint("r", c.round), s.requests(atMost(connections)), func(i int) *member {
		return c.members[picks[i%len(picks)]]
	})
	if err != nil {
		return err
	}
	r, err := s.send(c.service.url(), connections, http.StatusCreated, requests, once)
	if err != nil {
		return err
	}
	s.emitLoad("organizations/http/"+spread.String(), r, 1, "events/s")
	return nil
}
