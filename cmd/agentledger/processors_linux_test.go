package main

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// The service has two threads for Go code on a machine with one processor.
func TestServesOnOneProcessor(t *testing.T) {
	servicetest.Program(t) // built with all processors
	address := servicetest.FreeAddress(t)
	runtime.LockOSThread() // a child inherits the processors of the thread that starts it
	defer runtime.UnlockOSThread()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for cpu := 0; one.Count() == 0; cpu++ {
		if all.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.SchedSetaffinity(0, &all) }()
	servicetest.Empty(t, "--metrics-listen", address)
	answer, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\ngo_sched_gomaxprocs_threads 2\n") {
		t.Errorf("got no go_sched_gomaxprocs_threads of 2")
	}
}
