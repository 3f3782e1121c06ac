package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestHeapGrowth(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		live uint64
		want int
	}{{0, 1000}, {mib, 1000}, {16 * mib, 800}, {32 * mib, 400}, {128 * mib, 100}, {4 << 30, 100}} {
		if got := heapGrowth(c.live, 128*mib); got != c.want {
			t.Errorf("%d bytes: got %d, want %d", c.live, got, c.want)
		}
	}
}

// percent returns the GC percentage of the process.
func percent() int {
	now := debug.SetGCPercent(100)
	debug.SetGCPercent(now)
	return now
}

func TestHeapFloor(t *testing.T) {
	t.Setenv("GOGC", "")
	runtime.GC()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { holdHeapFloor(ctx, 64<<20); close(done) }()
	for deadline := time.Now().Add(time.Minute); percent() == 100; {
		if time.Now().After(deadline) {
			t.Fatal("the floor was not kept")
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-done
	if got := percent(); got != 100 {
		t.Errorf("afterwards: got %d, want 100", got)
	}
}

// The operator's own settings are not changed.
func TestHeapFloorLeftAlone(t *testing.T) {
	for _, c := range []struct {
		gogc  string
		floor int64
	}{{"70", 64 << 20}, {"off", 64 << 20}, {"", 0}} {
		t.Setenv("GOGC", c.gogc)
		holdHeapFloor(t.Context(), c.floor) // returns
		if got := percent(); got != 100 {
			t.Errorf("GOGC=%s, floor %d: got %d, want 100", c.gogc, c.floor, got)
		}
	}
}

func TestHeapMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	t.Setenv("GOMEMLIMIT", "1GiB")
	setMemoryLimit(123 << 20)
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("with GOMEMLIMIT in the environment: got %d, want %d", got, before)
	}
	t.Setenv("GOMEMLIMIT", "")
	setMemoryLimit(123 << 20)
	if got := debug.SetMemoryLimit(-1); got != 123<<20 {
		t.Errorf("got %d, want %d", got, 123<<20)
	}
}
