package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// engineReads fills a ledger, counts its bytes and reads from it, below all caches except the engine's.
func (s *suite) engineReads(ctx context.Context, c contestant) error {
	l, err := s.withLedgers(ctx, c, 1)
	if err != nil {
		return err
	}
	err = fill(ctx, s.Stored, func(n int, payload string) error { return l.addAll(ctx, 1, n, 1, prose(payload)) })
	if err != nil {
		return errors.Join(err, l.Close())
	}
	bytes, err := c.size(l)
	if err != nil {
		return err
	}
	s.emit("engines/disk/"+c.name, s.Stored, value{float64(bytes) / float64(s.Stored), "B/event"})
	store, err := c.open()
	if err != nil {
		return err
	}
	for _, r := range readings() {
		took, err := closedLoop(8, s.limit(), func(worker int) (step, error) {
			random := rand.New(rand.NewPCG(7, uint64(worker)))
			return func(int) error { return r.read(ctx, store, random.IntN(s.Stored), s.Stored) }, nil
		})
		if err != nil {
			return errors.Join(err, store.Close())
		}
		s.emitLoad(fmt.Sprintf("engines/read/%s/%s", c.name, r.name), took, 1, "reads/s")
	}
	return store.Close()
}

// reading is one kind of read of a ledger of size events, at a random one.
type reading struct {
	name string
	read func(ctx context.Context, e storage.Engine, at, size int) error
}

func readings() []reading {
	events := func(ctx context.Context, e storage.Engine, begin, end int) error {
		n := 0
		for _, err := range e.Events(ctx, 1, id.Index(begin), id.Index(end), storage.FieldRecord|storage.FieldEnvelope) {
			if err != nil {
				return err
			}
			n++
		}
		if n != end-begin {
			return fmt.Errorf("%d events of %d", n, end-begin)
		}
		return nil
	}
	return []reading{
		{"head", func(ctx context.Context, e storage.Engine, _, _ int) error {
			_, err := e.Head(ctx, 1)
			return err
		}},
		{"event", func(ctx context.Context, e storage.Engine, at, _ int) error { return events(ctx, e, at, at+1) }},
		{"events=256", func(ctx context.Context, e storage.Engine, at, size int) error {
			begin := max(0, min(at, size-256))
			return events(ctx, e, begin, min(size, begin+256))
		}},
		{"name", func(ctx context.Context, e storage.Engine, at, _ int) error {
			found, err := e.Lookup(ctx, 1, []storage.DedupKey{{Text: fmt.Sprint("e", at)}})
			if err == nil && found[0] == storage.NoIndex {
				err = storage.ErrNotFound
			}
			return err
		}},
		{"hashes=8", func(ctx context.Context, e storage.Engine, at, size int) error { // of a proof
			if size/256 == 0 {
				return nil
			}
			_, err := e.TileHashes(ctx, 1, 0, uint64(at%(size/256*256)/256), 0, 8)
			return err
		}},
	}
}
