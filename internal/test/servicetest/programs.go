package servicetest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/agentledger/agentledger/internal/test/chromium"
)

const module = "github.com/agentledger/agentledger/"

// programsVariable names a folder that already contains the programs of this tree. The Makefile builds them once and
// sets it for all tests.
const programsVariable = "AGENTLEDGER_TEST_PROGRAMS"

// folder belongs to this process and is removed by Main. It contains links to the programs.
var folder string

// Programs returns a folder with the programs agentledger and aps and the example programs that tests start. The folder
// stays as it is until the process ends, even if the tree is built again.
var Programs = sync.OnceValues(func() (string, error) {
	if given := os.Getenv(programsVariable); given != "" {
		return given, nil
	}
	dir, err := os.MkdirTemp(folder, "programs-")
	if err != nil {
		return "", err
	}
	return dir, linkPrograms(dir)
})

// linkPrograms builds the programs in a folder that all test processes of this tree share, and links them into dir.
// Only the first process after a change links them: for the others the build finds them up to date.
func linkPrograms(dir string) error {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	tree := strings.TrimSpace(string(root))
	shared := filepath.Join(os.TempDir(), fmt.Sprintf("agentledger-programs-%d-%x", os.Getuid(), sha256.Sum256([]byte(tree)))[:56])
	if err := os.MkdirAll(shared, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(shared, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	build := exec.Command("go", "build", "-buildvcs=false", "-tags=dev", "-ldflags=-X main.testPasswords=yes", "-o", shared+string(filepath.Separator),
		"./cmd/agentledger", "./cmd/aps", "./examples/toolloop", "./examples/httptool", "./examples/importer", "./examples/countersigned")
	build.Dir = tree
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	entries, err := os.ReadDir(shared)
	for _, entry := range entries {
		if entry.Name() != "lock" {
			err = errors.Join(err, os.Link(filepath.Join(shared, entry.Name()), filepath.Join(dir, entry.Name())))
		}
	}
	return err
}

// Runner runs the tests of a package, as *testing.M does.
type Runner interface{ Run() int }

// Main runs the tests of a package, which share browsers, and removes what they built.
func Main(m Runner) int {
	var err error
	if folder, err = os.MkdirTemp("", "agentledger-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }()
	defer chromium.Keep()()
	return m.Run()
}

// Program returns the path of agentledger, for tests that start it themselves.
func Program(t testing.TB) string {
	t.Helper()
	dir, err := Programs()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "agentledger")
}

// ProgramWith builds agentledger with further arguments of go build, for example as another version, and returns its
// path.
func ProgramWith(t testing.TB, arguments ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "agentledger")
	command := exec.Command("go", append(append([]string{"build", "-buildvcs=false", "-o", program}, arguments...), module+"cmd/agentledger")...)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}
