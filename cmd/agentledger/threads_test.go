package main

import (
	"runtime"
	"testing"
)

func TestLeastThreads(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	for name, c := range map[string]struct {
		environment string
		have, want  int
	}{
		"one processor":                        {"", 1, 2},
		"two":                                  {"", 2, 2},
		"eight":                                {"", 8, 8},
		"one, as the environment has it":       {"1", 1, 1},
		"eight, beside another in environment": {"4", 8, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOMAXPROCS", c.environment)
			runtime.GOMAXPROCS(c.have)
			setLeastThreads()
			if got := runtime.GOMAXPROCS(0); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}
