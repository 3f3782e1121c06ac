package main

import (
	"slices"
	"testing"
	"time"
)

// Growth by more than a tenth from the second quarter to the last is a leak, whatever the first quarter was.
func TestDrifts(t *testing.T) {
	const mib = 1 << 20
	tests := []struct {
		name        string
		run         time.Duration
		first, last sample // of the first three quarters, and of the last
		want        []string
	}{
		{"the same", time.Hour, sample{live: 100 * mib, goroutines: 100}, sample{live: 100 * mib, goroutines: 100}, nil},
		{"a tenth", time.Hour, sample{live: 100 * mib}, sample{live: 110 * mib}, nil},
		{"memory", time.Hour, sample{resident: 400 * mib, live: 100 * mib}, sample{resident: 465 * mib, live: 150 * mib}, []string{"resident-MiB", "live-MiB"}},
		{"less", time.Hour, sample{live: 100 * mib}, sample{live: 10 * mib}, nil},
		{"goroutines", time.Hour, sample{goroutines: 100}, sample{goroutines: 111}, []string{"goroutines"}},
		{"a few more of few", time.Hour, sample{goroutines: 10, sockets: 3}, sample{goroutines: 17, sockets: 6}, nil},
		{"sockets", time.Hour, sample{sockets: 3}, sample{sockets: 8}, []string{"sockets"}},
		{"bytes of an event", time.Hour, sample{disk: 600}, sample{disk: 700}, []string{"B/event"}},
		{"bytes of an event in a short run", 59 * time.Minute, sample{disk: 600}, sample{disk: 700}, nil},
		{"memory in a short run", 5 * time.Minute, sample{live: 100 * mib}, sample{live: 150 * mib}, []string{"live-MiB"}},
		{"memory before the caches are full", 4 * time.Minute, sample{live: 100 * mib}, sample{live: 120 * mib}, nil},
		{"resident memory in a short run", 10 * time.Minute, sample{resident: 120 * mib}, sample{resident: 200 * mib}, nil},
		{"files", 10 * time.Minute, sample{files: 20}, sample{files: 300}, []string{"files"}},
		{"a memtable", time.Hour, sample{resident: 300 * mib}, sample{resident: 360 * mib}, nil},
		{"tables and latencies", time.Hour, sample{files: 10, p99: 1}, sample{files: 90, p99: 9}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			samples := append(slices.Repeat([]sample{{}}, 5), slices.Repeat([]sample{tt.first}, 10)...)
			samples = append(samples, slices.Repeat([]sample{tt.last}, 5)...)
			var got []string
			for _, d := range drifts(samples) {
				if d.leaks(tt.run) {
					got = append(got, d.unit)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
