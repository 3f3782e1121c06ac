package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

var (
	killRounds = flag.Int("kill-rounds", 3, "rounds of TestKill")
	traces     = flag.String("traces", "../../examples/day.ndjson", "events that TestReplay sends")
)

// programs is the folder of the real programs.
var programs string

func TestMain(m *testing.M) {
	flag.Parse()
	testPasswords = "yes" // the linker sets it for the programs
	if *neighbourFile != "" {
		os.Exit(beNeighbour(*neighbourFile, flag.Arg(0)))
	}
	if *shopFile != "" {
		os.Exit(beShop(*shopFile))
	}
	if *guardedDir != "" {
		os.Exit(beGuarded(*guardedDir))
	}
	os.Exit(servicetest.Main(withPrograms{m}))
}

// withPrograms runs the tests of this package with the programs that they start.
type withPrograms struct{ *testing.M }

func (m withPrograms) Run() (status int) {
	var err error
	if programs, err = servicetest.Programs(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return traffic.Main(m.M)
}

const (
	testSecret   = "a platform secret for tests"
	testPassword = "a password for tests"
)

// process is a real server under test.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	exited chan error
	logs   *lockedBuffer
	setup  string // the line of the setup URL, if the server printed one before it served

	main, identity, metrics string // base URLs
	host, identityHost      string // host:port of both listeners, without a proxy in front of main and identity
}

type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// startProcess starts the server on a data directory and waits until it serves. It ends with the test.
func startProcess(t testing.TB, dir string, more ...string) *process {
	t.Helper()
	args := append([]string{"serve", "--data", dir, "--listen", "127.0.0.1:0", "--id-listen", "127.0.0.1:0",
		"--metrics-listen", "", "--public-url", "http://log.test", "--log-level", "warn"}, withTuning(t.TempDir(), t.Fatal, more)...)
	cmd := exec.Command(filepath.Join(programs, "agentledger"), args...)
	cmd.Env = append(os.Environ(), "AGENTLEDGER_PLATFORM_SECRET="+testSecret)
	p, err := launch(cmd)
	if err != nil {
		t.Fatal(err)
	}
	p.t = t
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the server's log:\n%s", p.logs)
		}
	})
	p.main, p.identity = watched(t, p.main), watched(t, p.identity)
	return p
}

// withTuning replaces arguments of the form tuning.KEY=VALUE by a configuration file in a folder.
func withTuning(dir string, fail func(...any), args []string) []string {
	section := map[string]any{}
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		setting, is := strings.CutPrefix(arg, "tuning.")
		key, text, _ := strings.Cut(setting, "=")
		if !is {
			return false
		}
		section[key] = text
		if n, err := strconv.Atoi(text); err == nil {
			section[key] = n
		}
		return true
	})
	if len(section) == 0 {
		return args
	}
	file := filepath.Join(dir, "tuning.json")
	content, err := json.Marshal(map[string]any{"tuning": section})
	if err == nil {
		err = os.WriteFile(file, content, 0o600)
	}
	if err != nil {
		fail(err)
	}
	return append(args, "--config", file)
}

// launch starts a server and waits until it serves. The caller must stop it.
func launch(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, exited: make(chan error, 1), logs: new(lockedBuffer)}
	cmd.Stderr = p.logs
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	serving := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "set up ") {
				p.setup = lines.Text()
			}
			if strings.HasPrefix(lines.Text(), "serving ") {
				serving <- lines.Text()
			}
		}
		io.Copy(io.Discard, out)
		p.exited <- cmd.Wait()
	}()
	select {
	case line := <-serving:
		fields := append(strings.Fields(line), "", "") // metrics may be off
		p.main, p.identity, p.metrics = fields[1], fields[3], fields[5]
		p.host, p.identityHost = strings.TrimPrefix(p.main, "http://"), strings.TrimPrefix(p.identity, "http://")
		return p, nil
	case err := <-p.exited:
		return nil, fmt.Errorf("the server ended before it served: %w\n%s", err, p.logs)
	case <-time.After(2 * time.Minute):
		p.kill()
		return nil, fmt.Errorf("the server does not serve\n%s", p.logs)
	}
}

// kill sends SIGKILL: nothing is flushed, no handler runs.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.wait()
}

// terminate sends SIGTERM, and wants an exit without an error.
func (p *process) terminate() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	if err := p.wait(); err != nil {
		p.t.Errorf("after SIGTERM: %v\n%s", err, p.logs)
	}
}

func (p *process) signal(s os.Signal) { p.cmd.Process.Signal(s) }

// wait waits for the end of the process and returns how it ended.
func (p *process) wait() error {
	err := <-p.exited
	p.exited <- err
	return err
}

// found creates an organization through the platform call.
func (p *process) found(ctx context.Context, slug string, more map[string]any) foundedOrganization {
	p.t.Helper()
	o, err := newOperator(p.main, p.identity)
	if err != nil {
		p.t.Fatal(err)
	}
	request := map[string]any{"name": slug, "slug": slug, "admin_email": "ops@" + slug + ".example", "admin_password": testPassword}
	for k, v := range more {
		request[k] = v
	}
	f, err := o.foundOrganization(ctx, testSecret, request)
	if err != nil {
		p.t.Fatal(err)
	}
	return f
}

// command runs one of the programs to its end.
func command(t testing.TB, name string, args ...string) (output string, exit int) {
	t.Helper()
	return commandWith(t, nil, name, args...)
}

// commandWith is command with additional variables ("NAME=value") in the environment.
func commandWith(t testing.TB, environment []string, name string, args ...string) (output string, exit int) {
	t.Helper()
	cmd := exec.Command(filepath.Join(programs, name), args...)
	cmd.Env = append(os.Environ(), environment...)
	out, err := cmd.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Error(err)
		return "", -1
	}
	return string(out), cmd.ProcessState.ExitCode()
}
