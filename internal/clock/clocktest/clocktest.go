// Package clocktest provides a machine's clocks for tests. Its time passes and steps only when the test says so.
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
	passed time.Duration // including sleep
	slept  time.Duration // time spent asleep
	step   time.Duration // total of the wall clock's steps
}

// New returns a machine whose clock shows a fixed noon.
func New() *Machine { return At(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)) }

// At returns a machine whose clock shows began.
func At(began time.Time) *Machine { return &Machine{began: began} }

// Pass lets time pass while the machine is awake.
func (m *Machine) Pass(d time.Duration) { m.moveWall(d, 0, 0) }

// Sleep lets time pass while the machine sleeps.
func (m *Machine) Sleep(d time.Duration) { m.moveWall(d, d, 0) }

// Step steps the wall clock without time passing.
func (m *Machine) Step(d time.Duration) { m.moveWall(0, 0, d) }

func (m *Machine) moveWall(pass, sleep, step time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.passed += pass
	m.slept += sleep
	m.step += step
}

// TrueTime returns the wall time without the steps.
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
