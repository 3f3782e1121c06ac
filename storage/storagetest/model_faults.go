package storagetest

import "github.com/agentledger/agentledger/storage"

// Failure is the outcome of one tenant's batch in an append, if the batch passes all checks.
type Failure uint8

const (
	// NoFailure applies the batch.
	NoFailure Failure = iota
	// Refused returns ErrUnavailable; nothing is applied.
	Refused
	// RequestLost returns ErrUnknown; nothing is applied.
	RequestLost
	// AnswerLost returns ErrUnknown, but the batch is applied and durable.
	AnswerLost
	// Broken returns ErrBroken, now and for every later call; the batch and all writes that are not durable yet are
	// lost.
	Broken
)

func (f Failure) err() error {
	switch f {
	case Refused:
		return storage.ErrUnavailable
	case RequestLost, AnswerLost:
		return storage.ErrUnknown
	case Broken:
		return storage.ErrBroken
	}
	return nil
}

// Fail makes f decide the outcome of each batch of later appends. nil removes f. f is called with the model locked; it
// must not call the model or retain the batch.
func (m *Model) Fail(f func(b storage.Batch) Failure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = f
}

// Hold prevents everything that is written from now on from becoming durable: it is applied, ledger reads show it, but
// Wait, Write, Barrier and Close wait. Holds are counted; the last release ends them. release must be called at most
// once.
func (m *Model) Hold() (release func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held++
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.held--
		m.settle()
	}
}

// Sync makes the writes that p waits for, and everything before them, durable despite all holds. p must belong to this
// model.
func (m *Model) Sync(p storage.Pending) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.counted-uint64(len(m.waiting)) < p.(*pending).last && !m.broken {
		m.waiting[0](m.durable)
		m.waiting = m.waiting[1:]
	}
	m.changed.Broadcast()
}

// Break makes the store behave as if a sync had failed: every waiting call and every later call returns ErrBroken.
func (m *Model) Break() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.breakLocked()
}

func (m *Model) breakLocked() {
	m.broken = true
	m.changed.Broadcast()
}

// Reopen returns a store with the durable state of m, as after a crash and a restart. It shares nothing with m, which
// may still be used, closed or broken.
func (m *Model) Reopen() *Model {
	m.mu.Lock()
	defer m.mu.Unlock()
	return newModel(m.durable.cloneState())
}
