// Package clocktest is a machine's clocks for tests: time passes and steps as the
// test says, and by nothing else.
package clocktest

import (
	"sync"
	"time"

	"github.com/agentledger/agentledger/internal/clock"
)

// Machine is a clock.Source. Its methods may be called concurrently.
type Machine struct {
	mu     sync.Mutex
	began  time.Time
	passed time.Duration // in all
	slept  time.Duration // total of all sleeps
	step   time.Duration // of the wall clock
}

// New returns a machine on which it is noon of one day.
func New() *Machine { return At(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)) }

// At returns a machine whose clock shows began.
func At(began time.Time) *Machine { return &Machine{began: began} }

// Pass lets time pass.
func (m *Machine) Pass(d time.Duration) { m.moveWall(d, 0, 0) }

// Sleep lets time pass while the machine sleeps.
func (m *Machine) Sleep(d time.Duration) { m.moveWall(d, d, 0) }

// Step moves the wall clock.
func (m *Machine) Step(d time.Duration) { m.moveWall(0, 0, d) }

func (m *Machine) moveWall(pass, sleep, step time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.passed += pass
	m.slept += sleep
	m.step += step
}

// TrueTime returns the time without the steps.
func (m *Machine) TrueTime() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.began.Add(m.passed)
}

// Read implements clock.Source.
func (m *Machine) Read() clock.Reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	return clock.Reading{Wall: m.began.Add(m.passed + m.step), Steady: m.passed - m.slept}
}

// Elapsed implements clock.Source.
func (m *Machine) Elapsed() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.passed
}
