package storagetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Model is an in-memory Engine. It is the reference that engines are compared with, and a store for the tests of other
// packages, which can make it fail, delay durability and crash.
//
// Invariants:
//
//   - It passes Run like every engine.
//   - Without Fail, Hold and Break, each append is durable when Append returns.
//   - Ledger reads show applied writes; record reads show durable writes.
type Model struct {
	mu      sync.Mutex
	changed sync.Cond // signaled when synced, broken or held changes

	applied *state
	durable *state
	waiting []func(*state) // applied but not durable writes, in order
	counted uint64         // number of writes applied so far
	held    int            // number of active holds on durability

	fail   func(storage.Batch) Failure
	broken bool
	closed bool
}

var _ Engine = (*Model)(nil)

// NewModel returns an empty store.
func NewModel() *Model { return newModel(newState()) }

func newModel(s *state) *Model {
	m := &Model{applied: s, durable: s.cloneState()}
	m.changed.L = &m.mu
	return m
}

// beginCall locks the model if it can still be used.
func (m *Model) beginCall(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	err := m.usable()
	if err != nil {
		m.mu.Unlock()
	}
	return err
}

func (m *Model) usable() error {
	switch {
	case m.broken:
		return storage.ErrBroken
	case m.closed:
		return fmt.Errorf("model is closed: %w", storage.ErrUnavailable)
	}
	return nil
}

// write applies f and queues it to become durable. The caller must hold mu.
func (m *Model) write(f func(*state)) (number uint64) {
	f(m.applied)
	m.waiting = append(m.waiting, f)
	m.counted++
	m.settle()
	return m.counted
}

// settle makes the waiting writes durable, unless there is a hold. The caller must hold mu.
func (m *Model) settle() {
	if m.held > 0 || m.broken {
		return
	}
	for _, f := range m.waiting {
		f(m.durable)
	}
	m.waiting = nil
	m.changed.Broadcast()
}

// await returns nil when the write with the given number is durable, or ErrBroken. The caller must hold mu.
func (m *Model) await(number uint64) error {
	for m.counted-uint64(len(m.waiting)) < number && !m.broken {
		m.changed.Wait()
	}
	if m.counted-uint64(len(m.waiting)) < number {
		return storage.ErrBroken
	}
	return nil
}

// Append implements storage.Ledgers.
func (m *Model) Append(batches []storage.Batch) storage.Pending {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := &pending{model: m, results: make([]error, len(batches))}
	seen := map[id.Tenant]bool{}
	for i, b := range batches {
		if seen[b.Tenant] {
			p.results[i] = fmt.Errorf("append: more than one batch of tenant %d", b.Tenant)
			continue
		}
		seen[b.Tenant] = true
		p.results[i] = m.appendOne(cloneBatch(b))
	}
	p.last = m.counted
	return p
}

// Stream implements storage.Ledgers. All appends of a Model become durable in one order.
func (m *Model) Stream(id.Tenant) int { return 0 }

func (m *Model) appendOne(b storage.Batch) error {
	if err := m.usable(); err != nil {
		return err
	}
	if err := m.applied.checkBatch(&b); err != nil {
		return err
	}
	failure := NoFailure
	if m.fail != nil {
		failure = m.fail(b)
	}
	if failure == NoFailure || failure == AnswerLost {
		m.write(func(s *state) { s.applyBatch(&b) })
	}
	if failure == Broken {
		m.breakLocked()
	}
	return failure.err()
}

// pending is an append to a Model.
type pending struct {
	model   *Model
	results []error
	last    uint64 // number of the latest write when the append was made
}

// Wait implements storage.Pending.
func (p *pending) Wait() []error {
	p.model.mu.Lock()
	defer p.model.mu.Unlock()
	if err := p.model.await(p.last); err != nil {
		for i := range p.results {
			p.results[i] = err
		}
	}
	return p.results
}

// Barrier implements storage.Ledgers.
func (m *Model) Barrier(ctx context.Context) error {
	if err := m.beginCall(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	return m.await(m.counted)
}

// Get implements storage.RecordStore.
func (m *Model) Get(ctx context.Context, t id.Tenant, kind storage.Kind, key string) (storage.Record, error) {
	if err := m.beginCall(ctx); err != nil {
		return storage.Record{}, err
	}
	defer m.mu.Unlock()
	r, ok := m.durable.records[recordName{t, kind, key}]
	if !ok {
		return storage.Record{}, fmt.Errorf("get record: %w", storage.ErrNotFound)
	}
	r.Value = cloneBytes(r.Value)
	return r, nil
}

// Scan implements storage.RecordStore.
func (m *Model) Scan(ctx context.Context, t id.Tenant, kind storage.Kind, begin, end string, limit int) ([]storage.Record, error) {
	if err := m.beginCall(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var found []storage.Record
	for name, r := range m.durable.records {
		if name.tenant == t && name.kind == kind && name.key >= begin && (end == "" || name.key < end) {
			r.Value = cloneBytes(r.Value)
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b storage.Record) int { return strings.Compare(a.Key, b.Key) })
	return found[:min(len(found), max(limit, 0))], nil
}

// Write implements storage.RecordStore.
func (m *Model) Write(ctx context.Context, t id.Tenant, changes []storage.Change) error {
	if err := m.beginCall(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	changes = cloneChanges(changes)
	if err := m.applied.checkChanges(t, changes); err != nil {
		if unsettled := m.await(m.counted); unsettled != nil {
			return unsettled
		}
		return fmt.Errorf("write records: %w", err)
	}
	if len(changes) == 0 {
		return nil
	}
	return m.await(m.write(func(s *state) { s.applyChange(t, changes) }))
}

// Drop implements Engine.
func (m *Model) Drop(ctx context.Context, t id.Tenant, mark storage.Record) error {
	if err := m.beginCall(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if err := storage.ValidateDrop(t, mark); err != nil {
		return err
	}
	if m.applied.records[recordName{t, mark.Kind, mark.Key}].Version != mark.Version {
		return fmt.Errorf("drop: %w", storage.ErrStale)
	}
	return m.await(m.write(func(s *state) {
		delete(s.ledgers, t)
		maps.DeleteFunc(s.records, func(n recordName, _ storage.Record) bool { return n.tenant == t })
	}))
}

// Close implements Engine.
func (m *Model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(); err != nil {
		return err
	}
	m.closed = true
	return m.await(m.counted)
}
