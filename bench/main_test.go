package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"testing"
	"time"
)

// TestMain lets the test program start itself as a child.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "child" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Every measure prints results, here of loads too small to be meaningful.
func TestEveryMeasure(t *testing.T) {
	dir, err := os.MkdirTemp("", "bench") // the database's user can't read the test's own folder
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	args := []string{"-runs", "1", "-time", "50ms", "-leaves", "3000", "-stored", "1000", "-dir", dir}
	for _, args := range [][]string{args, {"-soak", "2s", "-dir", dir, "soak"}} {
		if err := run(t.Context(), args, nil, &out); err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
	}
	for _, m := range measures() {
		line := regexp.MustCompile(fmt.Sprintf(`(?m)^Benchmark%s/\S+ [1-9]\d*( [-+.e\d]+ \S+)+$`, m.name))
		if !line.Match(out.Bytes()) {
			t.Errorf("%s printed nothing:\n%s", m.name, &out)
		}
	}
}

func TestParseRejects(t *testing.T) {
	for name, args := range map[string][]string{
		"measure": {"apend"}, "soak": {"-soak", "10ms"}, "flag": {"-rounds", "3"},
	} {
		if _, _, err := parse(args); err == nil {
			t.Errorf("%s: %q was accepted", name, args)
		}
	}
}

func TestEntriesAndSpread(t *testing.T) {
	s := spreads()[2]
	if got := len(entry("e1", text(rand.New(rand.NewPCG(1, 2)), entrySize))); got != entrySize {
		t.Errorf("entry of %d bytes", got)
	}
	counts := map[int]int{}
	for _, p := range s.picks() {
		counts[p]++
	}
	if len(counts) < 150 || counts[0] < 10*counts[100] {
		t.Errorf("%d of 200 organizations get events, the first %d, the hundredth %d", len(counts), counts[0], counts[100])
	}
}

func TestPublications(t *testing.T) {
	size := uint64(1)
	p := watch(func() (uint64, error) { return 5, nil })
	now := time.Now()
	for at := range uint64(3) {
		p.acknowledged(func() (uint64, error) { return size, nil }, at, now)
	}
	took, err := p.finish()
	if err != nil || len(took) != 3 {
		t.Errorf("got %d, %v", len(took), err)
	}
	failed := watch(func() (uint64, error) { return 0, context.Canceled })
	failed.acknowledged(func() (uint64, error) { return 0, nil }, 0, now)
	if _, err := failed.finish(); err == nil {
		t.Error("got no error from an unavailable checkpoint")
	}
}
