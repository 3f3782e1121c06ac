package policy_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/policy"
)

// What a compiled policy is taken to weigh is what it takes in memory, up to a
// factor of two: caches go by it.
func TestWeight(t *testing.T) {
	long := conditional(t, 50)
	for i := range long.Rules {
		long.Rules[i].When += strings.Repeat(` && payload.currency == "USD"`, 60)
	}
	for name, p := range map[string]policy.Policy{"conditions": conditional(t, 100), "long ones": long, "globs": manyRules(policy.MaxRules)} {
		const copies = 4
		var kept []*policy.Compiled
		before := heap()
		for range copies {
			kept = append(kept, compile(t, p))
		}
		got := int(heap()-before) / copies
		want := kept[0].Weight()
		t.Logf("%s: %d bytes in memory, %d said", name, got, want)
		if want < got/2 || want > 2*got {
			t.Errorf("%s: %d bytes in memory, %d said", name, got, want)
		}
		runtime.KeepAlive(kept)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
