package demo

import (
	"strings"
	"testing"
)

func TestPrinter(t *testing.T) {
	for name, test := range map[string]struct {
		play   func(*printer)
		want   string
		passed bool
	}{
		"nothing": {func(*printer) {}, "", false},
		"all pass": {func(p *printer) {
			p.scene("First")
			p.note("node %d", 1)
			p.check(true, "%d of %d", 2, 2)
			p.conclude("it holds")
			p.scene("Second")
			p.checkNone(nil, "no fault")
		}, "\n1. First\n   node 1\n   ok   2 of 2\n   => it holds\n\n2. Second\n   ok   no fault\n2 checks passed, 0 failed", true},
		"one fails": {func(p *printer) {
			p.check(true, "a")
			p.checkNone([]string{"c"}, "b")
		}, "   ok   a\n   FAIL b\n   c\n1 check passed, 1 failed", false},
	} {
		var out strings.Builder
		p := &printer{out: &out}
		test.play(p)
		if got := out.String() + p.counts(); test.want != "" && got != test.want || p.passedAll() != test.passed {
			t.Errorf("%s: got %v and %q, want %v and %q", name, p.passedAll(), got, test.passed, test.want)
		}
	}
}
