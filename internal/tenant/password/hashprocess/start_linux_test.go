package hashprocess

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// All threads of a process give way, because any of them may compute; none holds a variable of the service.
func TestProcessesGiveWayAndKnowNothing(t *testing.T) {
	t.Setenv("AGENTLEDGER_MASTER_KEY", "secret")
	own := readPriority(t, "/proc/thread-self/stat")
	p, _ := newPool(t)
	checkKey(t, p, "correct horse")
	dir := fmt.Sprintf("/proc/%d", p.idle[0].cmd.Process.Pid)
	threads, err := filepath.Glob(dir + "/task/*/stat")
	if err != nil || len(threads) < 2 {
		t.Fatalf("threads: %v, %v", threads, err)
	}
	for _, name := range threads {
		if got := readPriority(t, name); got != strconv.Itoa(priority) {
			t.Errorf("%s: priority %s, want %d", name, got, priority)
		}
	}
	if got := readPriority(t, "/proc/thread-self/stat"); got != own {
		t.Errorf("the priority of the service: got %s, want %s as before", got, own)
	}
	if environment, err := os.ReadFile(dir + "/environ"); err != nil || string(environment) != "GOMAXPROCS=1\x00" {
		t.Errorf("environment %q, %v", environment, err)
	}
}

// readPriority returns the nice value of proc(5)'s stat.
func readPriority(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	_, fields, _ := strings.Cut(string(text), ") ") // behind the thread's name: state is field 3 of proc(5)
	return strings.Fields(fields)[16]
}
