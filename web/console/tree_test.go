package console

import (
	"fmt"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// steps returns events one second apart. Each value is the index of the event's parent, -1 for none, or -2 for a parent
// on another page.
func steps(parents ...int) []step {
	all := make([]step, len(parents))
	begin := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for i, parent := range parents {
		all[i].ID = id.Event(fmt.Sprint("e", i))
		all[i].ReceivedAt = id.InstantOf(begin.Add(time.Duration(i) * time.Second))
		switch {
		case parent >= 0:
			all[i].Parent = wire.Text(fmt.Sprint("e", parent))
		case parent == -2:
			all[i].Parent = "elsewhere"
		}
	}
	return all
}

// write writes a tree as the names of its events, with marks for nested events and loops.
func write(nodes []*node) (text string) {
	for _, n := range nodes {
		text += " " + string(n.ID)
		if n.Deeper {
			text += "!"
		}
		if n.Loop {
			text += "?"
		}
		if len(n.Children) > 0 {
			text += " (" + write(n.Children) + " )"
		}
	}
	return text
}

func TestGrowTree(t *testing.T) {
	t.Parallel()
	chain := make([]int, maxDepth+4)
	for i := range chain {
		chain[i] = i - 1
	}
	deep := ""
	for i := range maxDepth {
		deep += fmt.Sprint(" e", i, " (")
	}
	deep += fmt.Sprintf(" e%d e%d! e%d! e%d!", maxDepth, maxDepth+1, maxDepth+2, maxDepth+3)
	for range maxDepth {
		deep += " )"
	}
	for name, tt := range map[string]struct {
		parents []int
		want    string
	}{
		"empty":                 {nil, ""},
		"no parents":            {[]int{-1, -1}, " e0 e1"},
		"a tree":                {[]int{-1, 0, 0, 1, -1}, " e0 ( e1 ( e3 ) e2 ) e4"},
		"a parent that is late": {[]int{1, -1, 0}, " e1 ( e0 ( e2 ) )"},
		"on another page":       {[]int{-2, 0}, " e0 ( e1 )"},
		"a loop":                {[]int{2, 0, 1, 1}, " e0? ( e1 ( e2 e3 ) )"},
		"its own parent":        {[]int{0, 0}, " e0? ( e1 )"},
		"a deep chain":          {chain, deep},
	} {
		if got := write(growTree(steps(tt.parents...))); got != tt.want {
			t.Errorf("%s: got%s, want%s", name, got, tt.want)
		}
	}
}

// Whatever parents agents name, each event appears once in the tree, no list is nested more deeply than the limit, and
// a bar ends with the last descendant.
func TestGrowTreeAgainstOracle(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		parents := make([]int, 1+random.IntN(60))
		for i := range parents {
			parents[i] = random.IntN(len(parents)+2) - 2
			if random.IntN(2) == 0 && i > 0 {
				parents[i] = i - 1
			}
		}
		all := steps(parents...)
		var seen []string
		var visit func(nodes []*node, depth int)
		visit = func(nodes []*node, depth int) {
			if depth > maxDepth && len(nodes) > 0 {
				t.Fatalf("%v: lists are %d deep", parents, depth)
			}
			for _, n := range nodes {
				seen = append(seen, string(n.ID))
				visit(n.Children, depth+1)
			}
		}
		visit(growTree(all), 0)
		slices.Sort(seen)
		var want []string
		for _, s := range all {
			want = append(want, string(s.ID))
		}
		slices.Sort(want)
		if !slices.Equal(seen, want) {
			t.Fatalf("%v: got %v", parents, seen)
		}
	}
}

// Dots and bars depend only on the times of the page.
func TestBars(t *testing.T) {
	t.Parallel()
	roots := growTree(steps(-1, 0, 0, 1, -1))
	first := roots[0]
	for _, c := range []struct {
		n               *node
		after, dot, bar string
	}{
		{first, "+0.000 s", "2.00%", "72.00%"}, {first.Children[0], "+1.000 s", "26.00%", "48.00%"},
		{first.Children[1], "+2.000 s", "50.00%", "0.00%"}, {roots[1], "+4.000 s", "98.00%", "0.00%"},
	} {
		if c.n.After != c.after || c.n.Dot != c.dot || c.n.Bar != c.bar {
			t.Errorf("%s: got %s, %s, %s", c.n.ID, c.n.After, c.n.Dot, c.n.Bar)
		}
	}
	if one := growTree(steps(-1))[0]; one.Dot != "2.00%" || one.Bar != "0.00%" {
		t.Errorf("one event: got %s, %s", one.Dot, one.Bar)
	}
}

// The work for a page is proportional to its events, also for a single chain.
func TestLongChain(t *testing.T) {
	t.Parallel()
	parents := make([]int, 200_000)
	for i := range parents {
		parents[i] = i - 1
	}
	n, rest := 0, growTree(steps(parents...))
	for len(rest) > 0 {
		next := rest[0].Children
		n += len(rest)
		rest = next
	}
	if n == 0 {
		t.Error("the tree is empty")
	}
}
