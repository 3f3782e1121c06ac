package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// process is a server in a separate process.
type process struct {
	cmd    *exec.Cmd
	urls   []string // of its listeners: the words after "serving"
	stderr *bytes.Buffer
	exited chan error
}

// How long a server may take to serve, and to end after SIGTERM.
const (
	startTimeout = 60 * time.Second
	stopTimeout  = 60 * time.Second
)

// start runs a command that prints "serving ..." once it serves.
func start(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, stderr: new(bytes.Buffer), exited: make(chan error, 1)}
	cmd.Stderr = p.stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	serving := make(chan []string, 1)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if words := strings.Fields(lines.Text()); len(words) > 1 && words[0] == "serving" {
				serving <- words[1:]
				break
			}
		}
		io.Copy(io.Discard, out)
		p.exited <- cmd.Wait()
	}()
	select {
	case p.urls = <-serving:
		return p, nil
	case err := <-p.exited:
		return nil, fmt.Errorf("%s ended before it served: %w\n%s", cmd.Path, err, p.stderr)
	case <-time.After(startTimeout):
		cmd.Process.Kill()
		return nil, fmt.Errorf("%s does not serve", cmd.Path)
	}
}

// url returns the address of the server.
func (p *process) url() string { return p.urls[0] }

// stop terminates the process and waits for its exit.
func (p *process) stop() error {
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.exited:
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", p.cmd.Path, err, p.stderr)
		}
		return nil
	case <-time.After(stopTimeout):
		p.cmd.Process.Kill()
		return errors.Join(fmt.Errorf("%s did not end", p.cmd.Path), <-p.exited)
	}
}
