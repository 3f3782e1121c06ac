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
	mostGrowth   = 1000 // percent, for a small heap
	heapInterval = time.Second
	liveHeap     = "/gc/heap/live:bytes" // after the latest collection
)

// holdHeapFloor keeps the floor, in bytes, until ctx ends, and then restores the usual growth. A process must call it at
// most once. Without a floor, Go collects the garbage of a service with 30 MiB of live objects each time another 30 MiB
// were allocated, many times a second under load. With a floor of 128 MiB it collects a quarter as often. Between two collections the heap grows by
// the floor, or by its live objects if those are more, but at most by ten times the live objects. A memory limit
// (GOMEMLIMIT) takes precedence. If the floor is 0 or GOGC is set, holdHeapFloor returns at once.
func holdHeapFloor(ctx context.Context, floor int64) {
	if floor <= 0 || os.Getenv("GOGC") != "" {
		return
	}
	ticker := time.NewTicker(heapInterval)
	defer ticker.Stop()
	defer debug.SetGCPercent(usualGrowth)
	set := usualGrowth
	for {
		// A change stops the world for a moment, so small changes are skipped.
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

// setMemoryLimit makes the collector run more often once the Go runtime uses that many bytes. Without it, a heap may grow
// to twice its live objects, which include the store's cache in a program without cgo. It has no effect if GOMEMLIMIT is
// set.
func setMemoryLimit(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes)
	}
}

// heapGrowth returns the percentage by which a heap may grow.
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
