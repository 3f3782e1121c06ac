//go:build unix

package childprocess

import (
	"bufio"
	"io"
	"os"
	"testing"
	"time"
)

// A descendant that ignores SIGTERM ends too, although the launcher that started it ends at SIGTERM.
func TestCloseEndsDescendants(t *testing.T) {
	fromChild, toTest, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer fromChild.Close()
	const program = `trap "" TERM; echo ready >&2; while :; do sleep 1; done`
	launcher := Command{Args: []string{"sh", "-c", `sh -c '` + program + `'; true`}, Stderr: toTest, Patience: 50 * time.Millisecond}
	p, err := launcher.Start()
	if err != nil {
		t.Fatal(err)
	}
	toTest.Close()
	in := bufio.NewReader(fromChild)
	if line, err := in.ReadString('\n'); err != nil {
		t.Fatalf("got %q, %v", line, err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 { // the end of the last process that holds the pipe
		t.Errorf("got %q, %v", rest, err)
	}
}
