package main

import (
	"slices"
	"testing"
)

// What grows by more than a tenth from the second quarter to the last is a leak, whatever the first one was.
func TestDrifts(t *testing.T) {
	const mib = 1 << 20
	tests := []struct {
		name        string
		first, last sample // of the first three quarters, and of the last
		want        []string
	}{
		{"the same", sample{live: 100 * mib, goroutines: 100}, sample{live: 100 * mib, goroutines: 100}, nil},
		{"a tenth", sample{live: 100 * mib}, sample{live: 110 * mib}, nil},
		{"memory", sample{resident: 400 * mib, live: 100 * mib}, sample{resident: 450 * mib, live: 112 * mib}, []string{"resident-MiB", "live-MiB"}},
		{"less", sample{live: 100 * mib}, sample{live: 10 * mib}, nil},
		{"goroutines", sample{goroutines: 100}, sample{goroutines: 111}, []string{"goroutines"}},
		{"a few more of few", sample{goroutines: 10, sockets: 3}, sample{goroutines: 17, sockets: 6}, nil},
		{"sockets", sample{sockets: 3}, sample{sockets: 8}, []string{"sockets"}},
		{"bytes of an event", sample{disk: 600}, sample{disk: 700}, []string{"B/event"}},
		{"tables and latencies", sample{files: 10, p99: 1}, sample{files: 90, p99: 9}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			samples := append(slices.Repeat([]sample{{}}, 5), slices.Repeat([]sample{tt.first}, 10)...)
			samples = append(samples, slices.Repeat([]sample{tt.last}, 5)...)
			var got []string
			for _, d := range drifts(samples) {
				if d.leaks() {
					got = append(got, d.unit)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
