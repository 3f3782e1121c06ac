// Package heapfloor sets how often the garbage collector runs. Hold lets the collector of a small heap run seldom. A service with 30 MiB of live objects is
// collected each time that 30 MiB more were allocated, many times a second under load; with a floor of 128 MiB four
// times less often.
//
// Invariants:
//
//   - Between two collections the heap grows by the floor, or by its live objects where those are more. It grows by
//     ten times the live objects at most.
//   - A setting of GOGC is left as it is. A memory limit (GOMEMLIMIT) comes before the floor.
package heapfloor

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

// Hold keeps the floor in bytes until ctx ends, and then the usual growth again. It is for one caller in a process.
// With a floor of 0, or with GOGC in the environment, it returns at once.
func Hold(ctx context.Context, floor int64) {
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
