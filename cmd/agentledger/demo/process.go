package demo

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// process is a program that the demo has started.
type process struct {
	*exec.Cmd
	ended chan struct{}
	err   error // how it ended; valid after ended is closed
}

// startProcess starts a program that ends with this one if the system supports it. Linux ends a process together with the
// thread that started it (prctl(2), PR_SET_PDEATHSIG), so that thread waits for the process.
func startProcess(command *exec.Cmd) (*process, error) {
	p := &process{Cmd: command, ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		if started <- err; err == nil {
			p.err = command.Wait()
		}
		close(p.ended)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// runs reports whether the program was started and has not ended.
func (p *process) runs() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// end sends a signal, unless the program has ended, and returns how the program ended.
func (p *process) end(signal os.Signal) error {
	_ = p.Process.Signal(signal) // an error means that it has ended
	return p.wait()
}

// wait waits for the end of the program and returns how it ended, with the name of the program.
func (p *process) wait() error {
	<-p.ended
	if p.err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(p.Path), p.err)
	}
	return nil
}

// environment returns the environment for programs of the demo, without the settings of other services and databases.
func environment(more ...string) []string {
	return append(slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "AGENTLEDGER_") || strings.HasPrefix(variable, "PG")
	}), more...)
}
