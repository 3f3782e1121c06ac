package storagetest

import "github.com/agentledger/agentledger/storage"

// Failure is an outcome for one tenant's part of an append that passed all its checks.
type Failure uint8

const (
	// NoFailure lets it pass.
	NoFailure Failure = iota
	// Refused answers ErrUnavailable; nothing is applied.
	Refused
	// RequestLost answers ErrUnknown; nothing is applied.
	RequestLost
	// AnswerLost answers ErrUnknown, and the part is applied and durable.
	AnswerLost
	// Broken answers ErrBroken, now and to every later call; the part and all writes that are not
	// durable yet are lost.
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

// Fail has f decide what happens to each part of the appends to come; nil ends it. f is called under the model's
// lock, must not call the model and not keep the batch.
func (m *Model) Fail(f func(b storage.Batch) Failure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = f
}

// Hold keeps everything that is written from now on from becoming durable: it is applied, ledger reads show it, and
// Wait, Write, Barrier and Close wait. Holds count; the last release ends them. release may be called once.
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

// Sync makes durable, in spite of all holds, the writes that p waits for and everything before them.
// p MUST be of this model.
func (m *Model) Sync(p storage.Pending) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.counted-uint64(len(m.waiting)) < p.(*pending).last && !m.broken {
		m.waiting[0](m.durable)
		m.waiting = m.waiting[1:]
	}
	m.changed.Broadcast()
}

// Break makes the store fail like one whose sync failed: every waiting call and every later call gets ErrBroken.
func (m *Model) Break() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.breakLocked()
}

func (m *Model) breakLocked() {
	m.broken = true
	m.changed.Broadcast()
}

// Reopen returns a store with the durable state of m, as after a crash and a restart. It shares
// nothing with m, which may be used further or be closed or broken.
func (m *Model) Reopen() *Model {
	m.mu.Lock()
	defer m.mu.Unlock()
	return newModel(m.durable.cloneState())
}
