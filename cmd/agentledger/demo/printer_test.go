package demo_test

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/cmd/agentledger/demo"
)

func TestPrinter(t *testing.T) {
	for name, test := range map[string]struct {
		play func(*demo.Printer)
		want string
		good bool
	}{
		"nothing": {func(*demo.Printer) {}, "\n0 checks passed, 0 failed\n", false},
		"all well": {func(p *demo.Printer) {
			p.BeginScene("First")
			p.PrintNote("node %d", 1)
			p.CountCheck(true, "%d of %d", 2, 2)
			p.PrintConclusion("it holds")
			p.BeginScene("Second")
		}, "\n1. First\n   node 1\n   ok   2 of 2\n   => it holds\n\n2. Second\n\n1 check passed, 0 failed\n", true},
		"one fails": {func(p *demo.Printer) {
			p.CountCheck(true, "a")
			p.CountCheck(false, "b")
		}, "   ok   a\n   FAIL b\n\n1 check passed, 1 failed\n", false},
	} {
		var out strings.Builder
		p := &demo.Printer{Out: &out}
		test.play(p)
		if good := p.PrintVerdict(); good != test.good || out.String() != test.want {
			t.Errorf("%s: got %v and %q, want %v and %q", name, good, out.String(), test.good, test.want)
		}
	}
}
