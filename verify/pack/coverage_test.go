package pack_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/packtest"
	"github.com/agentledger/agentledger/verify/pack"
)

// A report lists the comparisons of shown events, and packs that show more than was asked for are refused.
func TestCoverage(t *testing.T) {
	l := packtest.NewSampleLog(t)
	want := map[string][]string{"everything": {"1 false", "3 true"}, "of a tool, and comparisons": {"1 false", "3 true"},
		"of an agent, and comparisons": {"1 false", "3 true"}, "of a trace, and comparisons": {"1 false", "3 true"}, "everything, and comparisons": {"1 false", "3 true"}}
	for _, s := range packtest.CoverageSamples(t) {
		r, err := check(s.Parts.Bytes(t), l.Key())
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		var got []string
		for _, c := range r.Coverage {
			got = append(got, fmt.Sprint(uint64(c.LogIndex), " ", c.Covered))
		}
		if !slices.Equal(got, want[strings.TrimPrefix(s.Name, "comparisons: ")]) {
			t.Errorf("%s: got %q", s.Name, got)
		}
	}
	for _, w := range packtest.WrongCoverage(t) {
		if _, err := check(w.Bytes, l.Key()); !isWrong(err) {
			t.Errorf("%s: got %v", w.Name, err)
		}
	}
}

func TestDescribeCoverage(t *testing.T) {
	c := pack.Coverage{LogIndex: 42, From: 1_790_000_000_000, To: 1_790_000_060_000, Counts: pack.CoverageCounts{Calls: 5, Outside: 1, Matched: 1, Unpermitted: 1, Missing: 2, Extra: 3}}
	want := "compared    42: calls from 2026-09-21T14:13:20.000Z until before 2026-09-21T14:14:20.000Z not covered, as the service states: " +
		"1 of 4 matched, 1 unpermitted, 2 missing, 3 extra; record " + strings.Repeat("0", 64)
	if got := c.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
