package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	usual    = 100  // percent, the runtime's own growth
	most     = 1000 // percent, for a heap that has hardly begun
	interval = time.Second
	liveHeap = "/gc/heap/live:bytes" // at the end of the newest collection
)

// holdHeapFloor keeps the floor in bytes until ctx ends, and then the usual growth again. It is for one caller in a process.
// With a floor of 0, or with GOGC in the environment, it returns at once.
func holdHeapFloor(ctx context.Context, floor int64) {
	if floor <= 0 || os.Getenv("GOGC") != "" {
		return
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	defer debug.SetGCPercent(usual)
	set := usual
	for {
		// A change stops the world for a moment, so small ones are left.
		if percent := growth(readLive(), floor); percent > set+set/8 || percent < set-set/8 {
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

// Limit makes the collector run more often once the memory of the Go runtime reaches so many bytes. Without it a heap may
// grow to twice its live objects, which include the store's cache in a program without cgo. It has no effect if
// GOMEMLIMIT is in the environment.
func Limit(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes)
	}
}

// growth returns by how many percent a heap may grow.
func growth(live uint64, floor int64) int {
	if live == 0 {
		return most
	}
	return int(min(max(uint64(floor)*100/live, usual), most))
}

func readLive() uint64 {
	sample := []metrics.Sample{{Name: liveHeap}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
