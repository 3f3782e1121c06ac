// Package childprocess runs a program that this one talks to through standard input and output. It hides how the child
// and its descendants are ended on each operating system.
//
// Invariants:
//
//   - The child's environment contains none of this program's own variables (APS_…), because they hold credentials.
//   - Each child has its own process group. Close ends the child and all of its descendants in the group.
//   - On Linux the system kills the child however this program ends, even by SIGKILL. On other systems, and for the
//     child's descendants, such an end only closes the standard input.
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

// Command describes a program to start.
type Command struct {
	Args   []string          // the program and its arguments
	Env    map[string]string // added to this program's environment
	Dir    string            // working directory; "": this program's
	Stderr io.Writer         // receives the standard error of the program
	// User is the user that the program runs as; "": this program's. Another user needs the privilege to change users,
	// which root has. The program gets the groups of the user, and HOME, USER and LOGNAME unless Env has them.
	User string
	// Patience is how long Close waits after closing the input, and again after SIGTERM. 0: 5 s.
	Patience time.Duration
}

// Process is a running program.
type Process struct {
	Input  io.WriteCloser // the program's standard input
	Output io.Reader      // its standard output

	command   *exec.Cmd
	patience  time.Duration
	closeOnce sync.Once
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
	if c.User != "" {
		if err := c.changeUser(command); err != nil {
			return nil, fmt.Errorf("start program as user %.64q: %w", c.User, err)
		}
	}
	command.WaitDelay = time.Second // a descendant that is still running can hold the outputs open
	input, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start program: %w", err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start program: %w", err)
	}
	if err := start(command); err != nil {
		return nil, fmt.Errorf("start program: %w", err)
	}
	p := &Process{Input: input, Output: output, command: command, patience: c.Patience}
	if p.patience == 0 {
		p.patience = 5 * time.Second
	}
	return p, nil
}

// environment returns the own environment without APS_ variables, plus the added variables.
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

// Kill kills the process and its descendants at once. The caller must still call Close.
func (p *Process) Kill() { endGroup(p.command, true) }

// Close closes the input and waits until the process and its descendants have ended. Those that do not end in time get
// SIGTERM and then SIGKILL.
func (p *Process) Close() error {
	p.closeOnce.Do(func() {
		defer endDescendants(p.command, p.patience)
		_ = p.Input.Close() // an error means that the process has ended
		ended := make(chan error, 1)
		go func() { ended <- p.command.Wait() }()
		for _, kill := range []bool{false, true} {
			select {
			case <-ended:
				return
			case <-time.After(p.patience):
				endGroup(p.command, kill)
			}
		}
		<-ended
	})
	return nil
}
