package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	usualGrowth  = 100  // percent, the runtime's own growth
	mostGrowth   = 1000 // percent, for a heap that has hardly begun
	heapInterval = time.Second
	liveHeap     = "/gc/heap/live:bytes" // at the end of the newest collection
)

// holdHeapFloor keeps the floor in bytes until ctx ends, and then the usual growth again. It is for one caller in a process.
// Go collects the garbage of a service with 30 MiB of live objects each time that 30 MiB more were allocated, many times a
// second under load; with a floor of 128 MiB it does so four times less often. Between two collections the heap grows by
// the floor, or by its live objects if those are more, but at most by ten times the live objects. A memory limit
// (GOMEMLIMIT) comes before the floor.
// With a floor of 0, or with GOGC in the environment, it returns at once.
func holdHeapFloor(ctx context.Context, floor int64) {
	if floor <= 0 || os.Getenv("GOGC") != "" {
		return
	}
	ticker := time.NewTicker(heapInterval)
	defer ticker.Stop()
	defer debug.SetGCPercent(usualGrowth)
	set := usualGrowth
	for {
		// A change stops the world for a moment, so small ones are left.
		if percent := heapGrowth(readLiveHeap(), floor); percent > set+set/8 || percent < set-set/8 {
			debug.SetGCPercent(percent)
			set = percent
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// setMemoryLimit makes the collector run more often once the memory of the Go runtime reaches so many bytes. Without it a heap may
// grow to twice its live objects, which include the store's cache in a program without cgo. It has no effect if
// GOMEMLIMIT is in the environment.
func setMemoryLimit(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes)
	}
}

// heapGrowth returns by how many percent a heap may grow.
func heapGrowth(live uint64, floor int64) int {
	if live == 0 {
		return mostGrowth
	}
	return int(min(max(uint64(floor)*100/live, usualGrowth), mostGrowth))
}

func readLiveHeap() uint64 {
	sample := []metrics.Sample{{Name: liveHeap}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
