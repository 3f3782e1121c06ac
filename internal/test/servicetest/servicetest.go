// Package servicetest starts the real program for tests, with two organizations whose owners can sign in.
//
// Invariants:
//
//   - Each service has a folder, ports and secrets of its own, and ends with its test.
//   - The public URL has the host localhost, so that browsers have passkeys there.
//   - Nothing is faked: pages, calls and ledgers are those of the program as it is built.
package servicetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/openidtest"
)

// Password is that of every account of the fixture.
const Password = "a password for tests"

// Secret is the platform secret of every service.
const Secret = "a platform secret for tests"

// Service is a service that serves.
type Service struct {
	testing.TB
	URL         string // of the main listener, which is the public URL
	IdentityURL string // of the identity listener
	SetupURL    string // that an empty service prints, "" for one that is set up
	Red, Blue   *Organization

	command  *exec.Cmd
	log      *buffer
	provider *openidtest.Provider // nil: people have passwords alone
}

// address returns the URL as cookies have it.
func (s *Service) address() *url.URL {
	s.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		s.Fatal(err)
	}
	return u
}

// buffer is a log that may be read while it is written.
type buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// New starts a service and founds two organizations. More are arguments of serve.
func New(t testing.TB, more ...string) *Service {
	t.Helper()
	s := Empty(t, more...)
	s.Red, s.Blue = s.Found("Red", "red", "ann@red.example"), s.Found("Blue", "blue", "bob@blue.example")
	return s
}

// Empty starts a service without organizations.
func Empty(t testing.TB, more ...string) *Service {
	t.Helper()
	program, address := Program(t), FreeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	s := &Service{TB: t, URL: "http://localhost:" + port, log: new(buffer)}
	data := t.TempDir() // before the cleanup below: it is removed after the service has ended
	t.Cleanup(s.end)
	s.start(program, append([]string{"serve", "--data", data, "--listen", address,
		"--id-listen", "127.0.0.1:0", "--metrics-listen", "", "--public-url", s.URL}, more...))
	return s
}

func (s *Service) start(program string, args []string) {
	s.Helper()
	s.command = exec.Command(program, args...)
	s.command.Env = append(os.Environ(), "AGENTLEDGER_PLATFORM_SECRET="+Secret)
	s.command.Stderr = s.log
	out, err := s.command.StdoutPipe()
	if err == nil {
		err = s.command.Start()
	}
	if err != nil {
		s.Fatal(err)
	}
	lines := AwaitServing(s.TB, "the service", out)
	s.SetupURL, s.IdentityURL = SetupURL(lines), strings.Fields(lines[len(lines)-1])[3]
}

// Restart kills the service and starts it again with the same data and with more arguments of serve.
func (s *Service) Restart(more ...string) {
	s.Helper()
	_ = s.command.Process.Kill()
	_ = s.command.Wait()
	s.start(s.command.Path, append(s.command.Args[1:], more...))
}

// At returns a service that the test started by itself, with the platform secret Secret.
func At(t testing.TB, main, identity string) *Service {
	return &Service{TB: t, URL: main, IdentityURL: identity, log: new(buffer)}
}

// FreeAddress returns an address of this machine that no program listens on. Its port is below those that systems give
// to connections, so that it stays free while a program that listens there is started again.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 1000 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 15_000+rand.IntN(15_000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no address is free")
	return ""
}

// end ends the service. The log of a test that failed is shown.
func (s *Service) end() {
	if s.command.Process != nil {
		_ = s.command.Process.Kill()
		_ = s.command.Wait()
	}
	if s.Failed() {
		s.Logf("the log of the service:\n%s", s.log)
	}
}

// Operated returns the same service as the identity listener serves it, for the pages of the operator.
func (s *Service) Operated() *Service {
	same := *s
	same.URL = s.IdentityURL
	return &same
}

// ProcessorTime returns the time that the service has used, in steps of 10 ms.
func (s *Service) ProcessorTime() time.Duration {
	s.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.command.Process.Pid))
	if err != nil {
		s.Fatal(err)
	}
	var user, system int64
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // field 3 on
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		s.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100
}

// Log returns the lines that the service has logged.
func (s *Service) Log() string { return s.log.String() }
