package hashprocess

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"
)

func TestMain(m *testing.M) {
	if Serve(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

func question(password string) Parameters {
	return Parameters{Password: []byte(password), Salt: []byte("0123456789abcdef"), Passes: 1, MemoryKiB: 64, Lanes: 1, Size: 32}
}

func newPool(t *testing.T) (*Pool, *bytes.Buffer) {
	logged := new(bytes.Buffer)
	p := New(slog.New(slog.NewTextHandler(logged, nil)))
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, logged
}

func checkKey(t *testing.T, p *Pool, password string) {
	t.Helper()
	want := argon2.IDKey([]byte(password), []byte("0123456789abcdef"), 1, 64, 1, 32)
	if got := p.Key(question(password)); !bytes.Equal(got, want) {
		t.Errorf("%.20q: got %x, want %x", password, got, want)
	}
}

// A key is the library's, and the same process computes the next one.
func TestKeysAreComputedInAnotherProcess(t *testing.T) {
	p, logged := newPool(t)
	for _, password := range []string{"", "correct horse", "\x00\xff\n\"", strings.Repeat("é", 512)} {
		checkKey(t, p, password)
	}
	if len(p.idle) != 1 || p.idle[0].cmd.Process.Pid == os.Getpid() || logged.Len() != 0 {
		t.Errorf("got %d processes, log %q", len(p.idle), logged)
	}
}

// A process that never answers is ended, and the key is computed here.
func TestHangingProcess(t *testing.T) {
	p, logged := newPool(t)
	p.program, p.args, p.patience = "/bin/sleep", []string{"1000"}, 10*time.Millisecond
	checkKey(t, p, "correct horse")
	if len(p.idle) != 0 || !strings.Contains(logged.String(), "i/o timeout") {
		t.Errorf("got %d idle processes, log %q", len(p.idle), logged)
	}
}

func TestKeysAtTheSameTime(t *testing.T) {
	p, logged := newPool(t)
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() { checkKey(t, p, strings.Repeat("x", i)) })
	}
	group.Wait()
	if logged.Len() != 0 {
		t.Error(logged)
	}
}

// A sign-in does not fail with the process that computes its key.
func TestProcessFails(t *testing.T) {
	for name, prepare := range map[string]func(*Pool){
		"can't be started":     func(p *Pool) { p.program = "/nowhere/at/all" },
		"ends at once":         func(p *Pool) { p.program, p.args = "/bin/true", nil },
		"answers nonsense":     func(p *Pool) { p.program, p.args = "/bin/echo", []string{"hello"} },
		"answers a short key":  func(p *Pool) { p.program, p.args = "/bin/echo", []string{`"AAAA"`} },
		"was killed when idle": func(p *Pool) { p.Key(question("x")); kill(p) },
		"is closed":            func(p *Pool) { p.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			p, logged := newPool(t)
			prepare(p)
			checkKey(t, p, "correct horse")
			if got := logged.String(); !strings.Contains(got, "computed inside the service") || strings.Contains(got, "correct horse") {
				t.Errorf("logged %q", got)
			}
		})
	}
}

func kill(p *Pool) {
	_ = syscall.Kill(p.idle[0].cmd.Process.Pid, syscall.SIGKILL)
	_, _ = p.idle[0].cmd.Process.Wait()
}

// A process that failed is not asked again.
func TestProcessIsReplaced(t *testing.T) {
	p, logged := newPool(t)
	checkKey(t, p, "one")
	kill(p)
	checkKey(t, p, "two")
	logged.Reset()
	checkKey(t, p, "three")
	if logged.Len() != 0 {
		t.Errorf("the next key: %s", logged)
	}
}
