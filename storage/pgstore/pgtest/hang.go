package pgtest

import (
	"fmt"
	"syscall"
)

// Hang stops all processes of the server without ending them: connections stand and
// get no answer. GoOn has to come before any other call.
func (s *Server) Hang() error { return s.signalAll(syscall.SIGSTOP) }

// GoOn ends Hang.
func (s *Server) GoOn() error { return s.signalAll(syscall.SIGCONT) }

// signalAll signals the first process before the others, so that it starts none
// meanwhile.
func (s *Server) signalAll(signal syscall.Signal) error {
	if err := s.process.Process.Signal(signal); err != nil {
		return fmt.Errorf("signal postgres: %w", err)
	}
	for _, child := range childrenOf(s.process.Process.Pid) {
		_ = syscall.Kill(child, signal) // it may have ended by itself
	}
	return nil
}
