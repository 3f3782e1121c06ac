// Package childprocess runs a program that this one talks to by standard input and output.
//
// Invariants:
//
//   - The environment of a process has none of this program's own variables (APS_…), because these hold
//     credentials.
//   - A process has a group of its own. It ends with Close, together with its children.
package childprocess

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Command is a program to start.
type Command struct {
	Args   []string          // program and its arguments
	Env    map[string]string // added to the environment
	Dir    string            // working folder; "" is this program's
	Stderr io.Writer         // receives the program's diagnostics
	// Patience is the time that the process gets to end after its input was closed, and again after
	// SIGTERM; 0 means 5 s.
	Patience time.Duration
}

// Process is a running program.
type Process struct {
	Input  io.WriteCloser // the program's standard input
	Output io.Reader      // its standard output

	command  *exec.Cmd
	patience time.Duration
	close    sync.Once
}

// Start starts the process. It runs until Close.
func (c Command) Start() (*Process, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("start program: no command")
	}
	command := exec.Command(c.Args[0], c.Args[1:]...)
	command.Dir, command.Stderr = c.Dir, c.Stderr
	command.Env = environment(os.Environ(), c.Env)
	separateGroup(command)
	command.WaitDelay = time.Second // a child that is left behind can hold the outputs open
	input, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start program: %w", err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start program: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start program: %w", err)
	}
	p := &Process{Input: input, Output: output, command: command, patience: c.Patience}
	if p.patience == 0 {
		p.patience = 5 * time.Second
	}
	return p, nil
}

// environment returns the environment without this program's variables, and with the added ones.
func environment(own []string, added map[string]string) []string {
	var all []string
	for _, v := range own {
		if !strings.HasPrefix(v, "APS_") {
			all = append(all, v)
		}
	}
	for name, value := range added {
		all = append(all, name+"="+value)
	}
	return all
}

// Kill ends the process and its children at once. Close still has to be called.
func (p *Process) Kill() { endGroup(p.command, true) }

// Close closes the input and waits for the end. A process that stays gets SIGTERM, and then SIGKILL.
func (p *Process) Close() error {
	p.close.Do(func() {
		_ = p.Input.Close() // an error means that the process has ended
		gone := make(chan error, 1)
		go func() { gone <- p.command.Wait() }()
		for _, hard := range []bool{false, true} {
			select {
			case <-gone:
				return
			case <-time.After(p.patience):
				endGroup(p.command, hard)
			}
		}
		<-gone
	})
	return nil
}
