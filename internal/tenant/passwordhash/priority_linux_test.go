package passwordhash

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// While a password is hashed one thread gives way to all others; the others never do, so requests
// that go on in a thread of the process have its usual priority.
func TestHashesGiveWay(t *testing.T) {
	h := New(Cost{MemoryKiB: 8 << 10, Passes: 40})
	done := make(chan error, 1)
	go func() {
		_, err := h.HashPassword(t.Context(), "correct horse battery")
		done <- err
	}()
	most, inFirst := 0, false
	for ended := false; !ended; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			ended = true
		case <-time.After(time.Millisecond):
			n, first := countLow(t)
			most, inFirst = max(most, n), first
		}
	}
	if most != 1 && !(inFirst && most == 0) {
		t.Errorf("%d threads gave way, want the one that hashed", most)
	}
	for n := most; n > 0; n, _ = countLow(t) { // the thread ends with its goroutine
		time.Sleep(time.Millisecond)
	}
}

// countLow returns how many threads of the process have the priority of hashes, without the first one, and
// whether the first one has it. That one can't end: where a hash took place in it, the runtime uses it no more.
func countLow(t *testing.T) (n int, first bool) {
	t.Helper()
	threads, err := filepath.Glob("/proc/self/task/*/stat")
	if err != nil || len(threads) == 0 {
		t.Fatalf("no threads: %v", err)
	}
	for _, name := range threads {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it ended
		}
		_, fields, _ := strings.Cut(string(text), ") ") // behind the thread's name: state is field 3 of proc(5)
		f := strings.Fields(fields)
		switch low := len(f) > 16 && f[16] == strconv.Itoa(priority); {
		case low && filepath.Base(filepath.Dir(name)) == strconv.Itoa(os.Getpid()):
			first = true
		case low:
			n++
		}
	}
	return n, first
}
