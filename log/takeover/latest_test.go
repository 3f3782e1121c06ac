package takeover_test

import (
	"context"
	"testing"
	"time"

	"github.com/agentledger/agentledger/log/takeover"
)

func TestStandsIn(t *testing.T) {
	ctx := t.Context()
	inside, cancel := context.WithCancel(takeover.WithStandIn(ctx))
	defer cancel()
	if takeover.StandsIn(ctx) || !takeover.StandsIn(inside) {
		t.Error("the mark is not that of the context")
	}
	if takeover.Sight <= takeover.Patience {
		t.Error("a stand-in shows a head before its owner would wait")
	}
}

func TestOutstanding(t *testing.T) {
	var o takeover.Outstanding
	late := func(at time.Duration) bool { return o.IsLate(func() time.Duration { return at }) }
	const p = takeover.Patience
	for _, s := range []struct {
		name  string
		do    func()
		at    time.Duration
		wants bool
	}{
		{"none", func() {}, 99 * p, false},
		{"one at 0", func() { o.Begin(0) }, p - 1, false},
		{"late", func() {}, p, true},
		{"a second one", func() { o.Begin(p) }, p, true},
		{"the first has landed", func() { o.Land(0) }, p, true},
		{"the second has landed", func() { o.Land(p) }, 2*p - 1, false},
		{"all have", func() { o.End() }, 99 * p, false},
		{"another", func() { o.Begin(100 * p) }, 101*p - 1, false},
	} {
		if s.do(); late(s.at) != s.wants {
			t.Errorf("%s: got %v", s.name, !s.wants)
		}
	}
}
