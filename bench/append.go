package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/agentledger/agentledger/id"
)

// contender is a log in this process. add returns when an event of entrySize bytes is durable and integrated; published returns the size of the current checkpoint.
type contender interface {
	add(ctx context.Context, name, payload string) (index uint64, err error)
	published(ctx context.Context) (size uint64, err error)
	close() error
}

// senders are the numbers of concurrent senders, each of which waits for its own event. The largest is the capacity of our
// queue for one organization; the peer, which syncs several files per batch, needs that many to be at its best.
func senders() []int { return []int{1, 16, 64, 256, 1024, 4096} }

// settings are the settings with which the peer is measured if at most n events wait. Its best result counts. Batches of
// all waiting events, a half, a quarter or an eighth of them are combined with each age. The interval between checkpoints
// is the default, and for the oldest and largest batches also two shorter ones.
func settings(n int) []peerSettings {
	defaults := peerDefaults()
	all := []peerSettings{defaults}
	for _, batch := range batches(n) {
		for _, age := range []time.Duration{2 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, defaults.Age} {
			all = append(all, peerSettings{Batch: batch, Age: age, Checkpoint: defaults.Checkpoint})
		}
	}
	for _, age := range []time.Duration{10 * time.Millisecond, defaults.Age} {
		for _, interval := range []time.Duration{100 * time.Millisecond, time.Second} {
			all = append(all, peerSettings{Batch: uint(n), Age: age, Checkpoint: interval})
		}
	}
	slices.SortFunc(all, func(a, b peerSettings) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(all)
}

// batches are the sizes of batches that fill when n events wait.
func batches(n int) (sizes []uint) {
	for _, part := range []int{8, 4, 2, 1} {
		if size := uint(n / part); size > 0 {
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// appends measures durable, integrated appends to one tree.
func (s *suite) appends(ctx context.Context) error {
	for _, n := range senders() {
		for _, c := range s.contenders(ctx, settings(n)) {
			err := s.with(ctx, c, func(log contender) error {
				r, err := s.append(ctx, log, n, func(int, uint64, time.Time) {})
				if err == nil {
					s.emitLoad(fmt.Sprintf("append/%s/senders=%d", c.name, n), r, 1, "events/s")
				}
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// opener opens a contender.
type opener struct {
	name string
	open func(dir string) (contender, error)
}

func (s *suite) contenders(ctx context.Context, all []peerSettings) []opener {
	openers := []opener{{"ours", func(dir string) (contender, error) { return openOurs(ctx, dir, s.key) }}}
	for _, settings := range all {
		openers = append(openers, opener{"tessera/" + settings.String(), func(dir string) (contender, error) {
			return openTessera(ctx, dir, settings)
		}})
	}
	return openers
}

// with opens a contender in a new folder for as long as f runs.
func (s *suite) with(ctx context.Context, o opener, f func(contender) error) error {
	dir, remove, err := s.folder()
	if err != nil {
		return err
	}
	defer remove()
	c, err := o.open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f(c), c.close())
}

// append runs the load. It calls acknowledged for every event.
func (s *suite) append(ctx context.Context, log contender, senders int, acknowledged func(n int, index uint64, since time.Time)) (loopResult, error) {
	payload := text(rand.New(rand.NewPCG(1, 1)), entrySize)
	return closedLoop(senders, s.limit(), func(int) (step, error) {
		return func(n int) error {
			since := time.Now()
			index, err := log.add(ctx, fmt.Sprint("e", n), payload)
			if err == nil {
				acknowledged(n, index, since)
			}
			return err
		}, nil
	})
}

// ours is our log with one organization.
type ours struct{ *ledgers }

func openOurs(ctx context.Context, dir string, key masterKey) (*ours, error) {
	l, err := openLedgers(ctx, dir, key.key, 0)
	if err != nil {
		return nil, err
	}
	if err := l.found(ctx, 1); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &ours{l}, nil
}

func (o *ours) add(ctx context.Context, name, payload string) (uint64, error) {
	at, err := o.ledgers.add(ctx, 1, name, payload)
	return uint64(at), err
}

func (o *ours) published(ctx context.Context) (uint64, error) {
	s, err := o.State(ctx, id.Tenant(1))
	if err != nil {
		return 0, err
	}
	s.Checkpoint() // signed here, as a reader would get it
	return uint64(s.Size()), nil
}

func (o *ours) close() error { return o.Close() }
