package nodes_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// masterKey is the master key of all nodes of a test.
const masterKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// process is one node, over its restarts. Its addresses do not change.
type process struct {
	t                    *testing.T
	storage, data        string
	main, identity, node string
	url                  string   // of the internal listener, as the other nodes reach it
	program              string   // its path
	more                 []string // arguments of serve
	variables            []string // environment
	token                string   // printed by the latest start for the setup, or ""

	mu      sync.Mutex
	command *exec.Cmd
	errors  bytes.Buffer
}

// startProcess starts a node with its own folder.
func startProcess(t *testing.T, storage string) *process {
	t.Helper()
	p := newProcess(t, storage, servicetest.Program(t))
	p.start()
	return p
}

// newProcess returns a node with its own folder, which is not running yet and ends with the test.
func newProcess(t *testing.T, storage, program string) *process {
	t.Helper()
	p := &process{t: t, storage: storage, data: t.TempDir(), main: "http://" + servicetest.FreeAddress(t),
		identity: "http://" + servicetest.FreeAddress(t), node: servicetest.FreeAddress(t), program: program}
	p.url = "https://" + p.node
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the log of node %s:\n%s", p.main, p.errors.String())
		}
	})
	return p
}

func (p *process) storeFlags() []string { return []string{"--storage", p.storage, "--data", p.data} }

// start starts the program and waits until it serves.
func (p *process) start() {
	p.t.Helper()
	args := append([]string{"serve"}, p.storeFlags()...)
	args = append(args, "--listen", strings.TrimPrefix(p.main, "http://"),
		"--id-listen", strings.TrimPrefix(p.identity, "http://"), "--metrics-listen", "",
		"--public-url", "http://log.example", "--node-listen", p.node, "--node-url", p.url)
	command := exec.Command(p.program, append(args, p.more...)...)
	command.Env = append(environment(), p.variables...)
	command.Stderr = p
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	p.command = command
	p.mu.Unlock()
	_, p.token, _ = strings.Cut(servicetest.SetupURL(servicetest.AwaitServing(p.t, "node "+p.main, out)), "#token=")
}

func environment() []string {
	return append(os.Environ(), "AGENTLEDGER_PLATFORM_SECRET="+servicetest.Secret, "AGENTLEDGER_MASTER_KEY="+masterKey)
}

// fsck re-verifies the store with the anchors of the node, which is not running.
func (p *process) fsck() {
	p.t.Helper()
	command := exec.Command(p.program, append([]string{"fsck"}, p.storeFlags()...)...)
	command.Env = environment()
	if out, err := command.CombinedOutput(); err != nil {
		p.t.Errorf("fsck with the anchors of node %s: %v\n%s", p.main, err, out)
	}
}

// Write collects the log of the node.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.errors.Write(b)
}

func (p *process) signal(s os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.command != nil {
		_ = p.command.Process.Signal(s) // it may have ended
	}
}

// pid returns the process id of the latest start, or 0 before the first.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.command == nil {
		return 0
	}
	return p.command.Process.Pid
}

// kill ends the node at once.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	if p.command != nil {
		_ = p.command.Wait()
	}
}

// terminate stops the node as an operator does.
func (p *process) terminate() {
	p.signal(syscall.SIGTERM)
	if err := p.command.Wait(); err != nil {
		p.t.Errorf("node %s: stop: %v", p.main, err)
	}
}

// pause suspends the node for a time.
func (p *process) pause(d time.Duration) {
	p.signal(syscall.SIGSTOP)
	time.Sleep(d)
	p.signal(syscall.SIGCONT)
}
