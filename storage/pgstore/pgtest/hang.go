package pgtest

import (
	"fmt"
	"syscall"
)

// Hang stops all processes of the server without ending them: connections stay open but get no response. GoOn must be
// called before any other method.
func (s *Server) Hang() error { return s.signalAll(syscall.SIGSTOP) }

// GoOn undoes Hang.
func (s *Server) GoOn() error { return s.signalAll(syscall.SIGCONT) }

// signalAll signals the first process before its children, so that it starts no others in the meantime.
func (s *Server) signalAll(signal syscall.Signal) error {
	if err := s.process.Process.Signal(signal); err != nil {
		return fmt.Errorf("signal postgres: %w", err)
	}
	for _, child := range childrenOf(s.process.Process.Pid) {
		_ = syscall.Kill(child, signal) // it may already have ended
	}
	return nil
}
