package ledgertest

import (
	"context"
	"net/http"
	"sync"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
)

// Move is the move of an organization to another node, at one of the looks of the ledgers for its owner. This node is
// the other one too: it has the organization again when a request is passed on. Methods may be called concurrently.
type Move struct {
	Tenant id.Tenant

	mu     sync.Mutex
	at     int // the look that finds another owner; 0: none
	looks  int
	away   bool
	passed int
}

// Begin makes the look of a number, from 1, find another owner; 0: none does.
func (m *Move) Begin(at int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at, m.looks, m.passed = at, 0, 0
}

// End gives the organization back. It reports whether that was away, and how often requests were passed on.
func (m *Move) End() (moved bool, passed int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	moved = m.at > 0 && m.looks >= m.at
	m.at, m.away = 0, false
	return moved, m.passed
}

// Owned is for NewShared.
func (m *Move) Owned(t id.Tenant) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t != m.Tenant || m.at == 0 {
		return true
	}
	m.looks++
	m.away = m.away || m.looks == m.at
	return !m.away
}

// Owns is for edge.Edge.Passer. It is no look of the ledgers.
func (m *Move) Owns(_ context.Context, t id.Tenant) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return t != m.Tenant || !m.away
}

// Pass is for edge.Edge.Passer. The caller handles the request again.
func (m *Move) Pass(http.ResponseWriter, *http.Request, *admission.Elsewhere) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.passed++
	m.away = false
	return false, nil
}
