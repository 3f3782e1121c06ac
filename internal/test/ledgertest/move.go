package ledgertest

import (
	"context"
	"net/http"
	"sync"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
)

// Move simulates that an organization moves to another node at one of the ledgers' checks of its owner. This node also
// plays the other one: passing on a request gives the organization back. Its methods may be called concurrently.
type Move struct {
	Tenant id.Tenant

	mu     sync.Mutex
	at     int // number of the check that finds another owner; 0: none
	checks int
	away   bool
	passed int
}

// Begin makes the ledgers' check with a number, counted from 1, find another owner; 0: no check does.
func (m *Move) Begin(at int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at, m.checks, m.passed = at, 0, 0
}

// End gives the organization back. It reports whether the organization had moved, and how many requests were passed on.
func (m *Move) End() (moved bool, passed int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	moved = m.at > 0 && m.checks >= m.at
	m.at, m.away = 0, false
	return moved, m.passed
}

// Owned is the argument of NewShared.
func (m *Move) Owned(t id.Tenant) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t != m.Tenant || m.at == 0 {
		return true
	}
	m.checks++
	m.away = m.away || m.checks == m.at
	return !m.away
}

// Owns implements the Passer of an edge.Edge. It does not count as a check of the ledgers.
func (m *Move) Owns(_ context.Context, t id.Tenant) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return t != m.Tenant || !m.away
}

// Pass implements the Passer of an edge.Edge. The caller handles the request again.
func (m *Move) Pass(http.ResponseWriter, *http.Request, *admission.Elsewhere) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.passed++
	m.away = false
	return false, nil
}
