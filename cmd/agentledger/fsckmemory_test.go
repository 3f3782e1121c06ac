package main

import (
	"runtime/debug"
	"testing"

	"github.com/agentledger/agentledger/internal/config"
)

// Commands that read a whole store use at most 400 MiB. About 40 MiB of this are the program's own pages. The rest must
// fit the cache, or the memtables of the log of a killed server, 64 MiB each, which Pebble takes from the cache.
func TestMemoryOfReadingCommands(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	t.Setenv("GOMEMLIMIT", "")
	for set, want := range map[int]int{0: 128, 16: 16, 64: 64, 256: 128, 1 << 20: 128} {
		tuning := config.DefaultTuning()
		tuning.CacheMiB = set
		if got := (offline{Tuning: tuning}).forReading().CacheMiB; got != want {
			t.Errorf("cache_mib %d: got a cache of %d MiB, want %d", set, got, want)
		}
	}
	const all, program, memtables = 400 << 20, 40 << 20, 4 * 64 << 20
	got := debug.SetMemoryLimit(-1)
	if got > all-program || got < max(readCacheMiB<<20, memtables)+32<<20 {
		t.Errorf("got a memory limit of %d MiB", got>>20)
	}
}
