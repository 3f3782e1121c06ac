package log_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// simStore is a store whose failures and durability the simulation decides. It
// never blocks: whoever has to wait for durability makes it come.
type simStore struct {
	*storagetest.Model
	random  *rand.Rand
	trace   func(format string, args ...any)
	release func()
	fails   float64 // how often a call fails

	late     []storage.Batch // whose request is still on its way, though its sender has given up
	delays   bool            // requests may be late
	unfenced bool            // the guard does not compare epochs, as it must

	applied []storage.Batch // what took effect, in order
	durable int             // how many of applied a crash does not take
}

func newSimStore(random *rand.Rand, trace func(string, ...any)) *simStore {
	s := &simStore{random: random, trace: trace}
	s.use(storagetest.NewModel())
	return s
}

func (s *simStore) use(m *storagetest.Model) {
	s.Model = m
	s.release = m.Hold()
	m.Fail(s.fail)
}

// crash loses what is not durable.
func (s *simStore) crash() {
	s.use(s.Model.Reopen())
	s.late = nil
	s.applied = s.applied[:s.durable]
}

func (s *simStore) broken() bool {
	return errors.Is(s.Model.Write(context.Background(), red, nil), storage.ErrBroken)
}

func (s *simStore) chance(p float64) bool { return s.random.Float64() < p }

func (s *simStore) fail(b storage.Batch) storagetest.Failure {
	if !s.chance(s.fails) {
		return storagetest.NoFailure
	}
	kinds := []storagetest.Failure{storagetest.Refused, storagetest.RequestLost, storagetest.AnswerLost}
	if s.chance(0.05) {
		return storagetest.Broken
	}
	kind := kinds[s.random.IntN(len(kinds))]
	if kind == storagetest.RequestLost && s.delays {
		s.late = append(s.late, b)
	}
	return kind
}

// deliver has a late request take effect after all, if the guard lets it.
func (s *simStore) deliver() {
	if len(s.late) == 0 {
		return
	}
	b := s.late[0]
	s.late = s.late[1:]
	fails := s.fails
	s.fails = 0
	s.Append([]storage.Batch{b})
	s.fails = fails
}

func (s *simStore) unavailable() error {
	if s.chance(s.fails / 4) {
		s.trace("  the store is out of reach")
		return fmt.Errorf("simulated: %w", storage.ErrUnavailable)
	}
	return nil
}

// Append applies, and keeps what took effect for the oracle.
func (s *simStore) Append(batches []storage.Batch) storage.Pending {
	before := make([]storage.Head, len(batches))
	for i, b := range batches {
		before[i], _ = s.Model.Head(context.Background(), b.Tenant)
	}
	if s.unfenced {
		batches = withEpochs(batches, before)
	}
	p := &simPending{store: s, Pending: s.Model.Append(batches)}
	for i, b := range batches {
		head, err := s.Model.Head(context.Background(), b.Tenant)
		took := err == nil && head == b.Head && before[i] != head
		s.trace("  append to %d at %d: %d events, took effect: %v", b.Tenant, b.Expect.Size, len(b.Events), took)
		if took {
			s.applied = append(s.applied, b)
		}
	}
	p.applied = len(s.applied)
	return p
}

// withEpochs returns batches that pass the guard of epochs, whoever wrote the stored heads.
func withEpochs(batches []storage.Batch, stored []storage.Head) []storage.Batch {
	batches = slices.Clone(batches)
	for i := range batches {
		b := &batches[i]
		b.Expect.Epoch = stored[i].Epoch
		b.Head.Epoch = max(b.Head.Epoch, stored[i].Epoch)
	}
	return batches
}

// Stream implements storage.Ledgers: appends land in an order of their own in each of
// two streams, and fail by themselves.
func (s *simStore) Stream(t id.Tenant) int { return int(t % 2) }

type simPending struct {
	storage.Pending
	store   *simStore
	applied int
}

func (p *simPending) Wait() []error {
	p.store.Model.Sync(p.Pending)
	results := p.Pending.Wait()
	if !errors.Is(errors.Join(results...), storage.ErrBroken) {
		p.store.durable = max(p.store.durable, p.applied)
	}
	p.store.trace("  wait: %v", results)
	return results
}

// settled makes everything durable, unless the store is broken, for the call of do.
func (s *simStore) settled(do func() error) error {
	s.release()
	err := do()
	s.release = s.Model.Hold()
	if !errors.Is(err, storage.ErrBroken) {
		s.durable = len(s.applied)
	}
	return err
}

func (s *simStore) Barrier(ctx context.Context) error {
	if err := s.unavailable(); err != nil {
		return err
	}
	return s.settled(func() error { return s.Model.Barrier(ctx) })
}

func (s *simStore) Write(ctx context.Context, t id.Tenant, changes []storage.Change) error {
	return s.settled(func() error { return s.Model.Write(ctx, t, changes) })
}

func (s *simStore) Head(ctx context.Context, t id.Tenant) (storage.Head, error) {
	if err := s.unavailable(); err != nil {
		return storage.Head{}, err
	}
	return s.Model.Head(ctx, t)
}

func (s *simStore) Lookup(ctx context.Context, t id.Tenant, names []storage.DedupKey) ([]id.Index, error) {
	if err := s.unavailable(); err != nil {
		return nil, err
	}
	return s.Model.Lookup(ctx, t, names)
}
