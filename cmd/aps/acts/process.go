package acts

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/agentledger/agentledger/internal/commandline"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// process is a program that runs once.
type process struct {
	path    string
	command []string
	streams *Streams
	files   []string // digests of which are recorded at the end

	began  bool
	status int // exit code for the caller; 128 plus the number of the signal that ended the program
}

// exitFormat is the text of a failure.
const exitFormat = "exit status %d"

// run runs the program and returns the members of its result. It returns an error if the exit code is not 0.
func (p *process) run() (map[string]any, error) {
	p.began = true
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded...)
	defer signal.Stop(signals)
	cmd := exec.Command(p.path)
	cmd.Args, cmd.Env = p.command, withoutCredentials(os.Environ())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.streams.In, p.streams.Out, p.streams.Err
	if err := cmd.Start(); err != nil {
		p.status = notPermitted
		_, _ = fmt.Fprintln(p.streams.Err, "aps:", textcheck.PrintableLines(err.Error()))
		return map[string]any{"exit_status": nil, "signal": nil}, fmt.Errorf(exitFormat, p.status)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return p.awaitEnd(cmd, signals, ended)
}

func (p *process) awaitEnd(cmd *exec.Cmd, signals <-chan os.Signal, ended <-chan error) (map[string]any, error) {
	fromTerminal := commandline.IsTerminal(p.streams.In)
	for {
		select {
		case s := <-signals:
			// A terminal sends its signals to the program too.
			if !fromTerminal || s != syscall.SIGINT && s != syscall.SIGQUIT {
				_ = cmd.Process.Signal(s) // it may have exited
			}
		case err := <-ended:
			return p.describeEnd(cmd, err)
		}
	}
}

func (p *process) describeEnd(cmd *exec.Cmd, err error) (map[string]any, error) {
	members := map[string]any{"exit_status": cmd.ProcessState.ExitCode(), "signal": nil}
	p.status = cmd.ProcessState.ExitCode()
	state, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if state.Signaled() {
		p.status = 128 + int(state.Signal())
		members["exit_status"], members["signal"] = nil, int(state.Signal())
	}
	if len(p.files) > 0 {
		members["files"] = digestFiles(p.files)
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		p.status = max(p.status, 1) // its output could not be forwarded
	}
	if p.status != 0 {
		return members, fmt.Errorf(exitFormat, p.status)
	}
	return members, nil
}

// withoutCredentials returns an environment without the settings of aps.
func withoutCredentials(environment []string) []string {
	return slices.DeleteFunc(slices.Clone(environment), func(v string) bool { return strings.HasPrefix(v, "APS_") })
}

// digestFiles returns the SHA-256 of each file in hex, or nil for a file that can't be read.
func digestFiles(names []string) map[string]any {
	digests := make(map[string]any, len(names))
	for _, name := range names {
		digests[name] = nil
		if sum, err := digestFile(name); err == nil {
			digests[name] = sum
		}
	}
	return digests
}

func digestFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
