package demo

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
)

// process is a program that the demo started.
type process struct {
	command *exec.Cmd
	ended   chan struct{}
	err     error // how it ended; read it after ended
}

// startProcess starts a program that ends with this one, where the system can do that. The system ends a process
// together with the thread that started it (prctl(2), PR_SET_PDEATHSIG), so that thread waits for the end.
func startProcess(command *exec.Cmd) (*process, error) {
	p := &process{command: command, ended: make(chan struct{})}
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

// runs reports whether the program has not ended.
func (p *process) runs() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// signal sends a signal to a program that may have ended, and waits for the end.
func (p *process) signal(s os.Signal) error {
	_ = p.command.Process.Signal(s)
	<-p.ended
	return p.err
}

// tail keeps the end of a log. It may be used concurrently.
type tail struct {
	mu   sync.Mutex
	text string
}

const tailBytes = 16 << 10

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text += string(b)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = t.text[over:]
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text
}

// environment returns the environment for programs of the demo, without the settings that are meant for other
// services and databases.
func environment(more ...string) []string {
	var kept []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "AGENTLEDGER_") && !strings.HasPrefix(variable, "PG") {
			kept = append(kept, variable)
		}
	}
	return append(kept, more...)
}
