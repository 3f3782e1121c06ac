package childprocess

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

const isParent = "AGENTLEDGER_TEST_PARENT"

// TestMain is also a program that starts a child and is then killed.
func TestMain(m *testing.M) {
	if os.Getenv(isParent) == "" {
		os.Exit(m.Run())
	}
	// The loop is inside of the shell and bounded, so that a child that survives says so.
	const program = `echo ready; i=0; while [ $i -lt 2000000 ]; do i=$((i+1)); done; echo survived >&2`
	p, err := Command{Args: []string{"sh", "-c", program}, Stderr: os.Stdout}.Start()
	if err != nil {
		panic(err)
	}
	if _, err := p.Output.Read(make([]byte, 8)); err != nil {
		panic(err)
	}
	self, _ := os.FindProcess(os.Getpid()) // never fails on Unix
	_ = self.Kill()
	select {}
}

func TestChildEndsWithItsParent(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), isParent+"=yes")
	var out strings.Builder
	parent.Stdout = &out // Run waits until no process holds it
	if err := parent.Run(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the parent: %v", err)
	}
	if strings.Contains(out.String(), "survived") {
		t.Error("the child survived its parent")
	}
}
