package policy_test

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/policy"
)

// The weight of a compiled policy is close to its memory size: never less than two thirds of it, and for
// usual policies at most twice as much. Caches rely on it.
func TestWeight(t *testing.T) {
	long := conditional(t, 20)
	for i := range long.Rules {
		long.Rules[i].When += strings.Repeat(` && payload.currency == "USD"`, 60)
	}
	deep := manyRules(policy.MaxRules)
	for i := range deep.Rules {
		deep.Rules[i].Tool = fmt.Sprintf("a%d%s", i, strings.Repeat(".b", 100))
		deep.Rules[i].Requires = []string{"a" + strings.Repeat(".b", 60)}
	}
	agents := manyRules(20)
	for i := range agents.Rules {
		for j := range policy.MaxAgents - 2 {
			agents.Rules[i].Agents = append(agents.Rules[i].Agents, id.Agent(fmt.Sprintf("agt_%d", j)))
		}
	}
	same := manyTimes(500, "deny", func(int) string { return strings.Repeat(`payload.s.matches('a{0,90}z0') || `, 20) + "true" })
	patterns := manyTimes(500, "deny", func(i int) string { return fmt.Sprintf(`tool_name.matches('^[a-z]{0,20}x%d$')`, i%100) })
	for name, tc := range map[string]struct {
		p     policy.Policy
		usual bool
	}{
		"conditions":     {conditional(t, 100), true},
		"long ones":      {long, true},
		"globs":          {manyRules(policy.MaxRules), true},
		"deep globs":     {deep, true},
		"agents":         {agents, true},
		"patterns":       {parse(t, string(patterns)), false},
		"equal ones":     {parseStored(t, same), false},
		"lists":          {parse(t, string(manyTimes(9, "deny", func(i int) string { return fmt.Sprintf(`%d in [%s1]`, i, strings.Repeat("1,", 1000)) }))), false},
		"lists of texts": {parse(t, string(manyTimes(9, "deny", func(i int) string { return fmt.Sprintf(`"%d" in [%s"1"]`, i, strings.Repeat(`"x",`, 450)) }))), false},
		"repeated":       {parse(t, string(manyTimes(50, "deny", func(i int) string { return fmt.Sprintf(`tool_name.matches('(a{0,90})%d')`, i) }))), false},
		"classes":        {parse(t, string(manyTimes(100, "deny", func(i int) string { return fmt.Sprintf(`tool_name.matches('(?i)\\pL%d')`, i) }))), false},
		"at the beginning": {parse(t, string(manyTimes(20, "deny", func(i int) string {
			return fmt.Sprintf(`tool_name.matches('^(?:%d%s)$')`, i, strings.Repeat("|x", 0)+alternatives(120))
		}))), false},
	} {
		const copies = 4
		var compiled []*policy.Compiled
		before := heap()
		for range copies {
			compiled = append(compiled, compile(t, tc.p))
		}
		got := int(heap()-before) / copies
		want := compiled[0].Weight()
		t.Logf("%s: %d bytes in memory, weight %d", name, got, want)
		if want < got*2/3 || tc.usual && want > 2*got {
			t.Errorf("%s: %d bytes in memory, weight %d", name, got, want)
		}
		runtime.KeepAlive(compiled)
	}
}

// alternatives returns a part of a pattern with one alternative for each of n first characters.
func alternatives(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "|%c%c", rune(0x4e00+i*7), rune(0x5e00+i))
	}
	return b.String()
}

func parseStored(tb testing.TB, document []byte) policy.Policy {
	tb.Helper()
	p, err := policy.ParseStored(document)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// shape is a condition of maximum length: begin, units with joins between them, end. i is the number of
// its rule.
type shape struct {
	begin string
	unit  func(i, k int) string
	join  string
	end   string
	most  int // maximum number of rules, 0 for no maximum: a policy's patterns are limited
}

func (s shape) when(i int) string {
	var b strings.Builder
	b.WriteString(s.begin)
	for k := 0; ; k++ {
		unit := s.unit(i, k)
		if b.Len()+len(unit)+len(s.join)+len(s.end) > policy.MaxWhen {
			return b.String() + s.end
		}
		if k > 0 {
			b.WriteString(s.join)
		}
		b.WriteString(unit)
	}
}

// shapes returns conditions that are expensive to compile, each in its own way.
func shapes() map[string]shape {
	of := func(format string) func(i, k int) string {
		return func(i, k int) string {
			return strings.NewReplacer("%i", fmt.Sprint(i), "%k", fmt.Sprint(k)).Replace(format)
		}
	}
	once := func(format string) func(i, k int) string {
		return func(i, k int) string { return of(format)(i, k)[:len(of(format)(i, k))*(1-min(k, 1))] }
	}
	return map[string]shape{
		"sums":     {"", of("1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1==%i"), "||", "", 0},
		"members":  {"", of("payload.a%k==%i.0"), "||", "", 0},
		"brackets": {"", of("[[[[[[[[[[[[%i]]]]]]]]]]]]==[]"), "||", "", 0},
		"mixed":    {"", of("payload.a&&(payload.b||payload.c&&(payload.d||payload.x==%i))"), "||", "", 0},
		"texts":    {"", of(`"` + strings.Repeat("x", 600) + `%i%k"==""`), "||", "", 0},
		"one pass": {"", once(`"".matches("^(?:%i` + alternatives(240) + `)$")`), " ", "", 13},
		"comments": {"1==%i", of("//x\n"), "", "", 0},
	}
}

// largest returns the largest policy of a shape that can be saved, with requirements and agents as far as
// the size allows.
func largest(tb testing.TB, s shape) []byte {
	tb.Helper()
	parts := 0
	var whens []string
	for i := range min(policy.MaxRules, cmp.Or(s.most, policy.MaxRules)) {
		when := strings.ReplaceAll(s.when(i), "%i", fmt.Sprint(i))
		if parts += policy.PartsOf(when); parts > policy.MaxParts {
			break
		}
		whens = append(whens, when)
	}
	document := manyTimes(len(whens), "deny", func(i int) string { return whens[i] })
	document = []byte(strings.ReplaceAll(string(document), `"tool":"**"`, `"tool":"**","requires":[]`))
	return document
}

// maxSaving is the maximum number of bytes that checking a saved policy may allocate.
const maxSaving = 150 << 20

// Checking any policy that is saved allocates a bounded number of bytes. BenchmarkSaving measures the
// time.
func TestSavingIsBounded(t *testing.T) {
	for name, s := range shapes() {
		document := largest(t, s)
		p, allocated := parseCounted(t, document)
		t.Logf("%s: %d rules, %d KiB allocated", name, len(p.Rules), allocated>>10)
		if len(p.Rules) == 0 || allocated > maxSaving {
			t.Errorf("%s: %d rules, %d bytes allocated", name, len(p.Rules), allocated)
		}
	}
}

// parseCounted returns a policy and the number of bytes allocated to check it.
func parseCounted(tb testing.TB, document []byte) (policy.Policy, uint64) {
	tb.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, err := policy.Parse(document)
	runtime.ReadMemStats(&after)
	if err != nil {
		tb.Fatal(err)
	}
	return p, after.TotalAlloc - before.TotalAlloc
}

// BenchmarkSaving checks the largest policies of each shape.
func BenchmarkSaving(b *testing.B) {
	all := shapes()
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			document := largest(b, all[name])
			b.ReportAllocs()
			for b.Loop() {
				if _, err := policy.Parse(document); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
