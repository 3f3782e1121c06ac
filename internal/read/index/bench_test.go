package index_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/column"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/pgstore"
)

var (
	events  = flag.Int("events", 100_000, "events of the benchmark")
	storeIn = flag.String("store", "", "folder of the benchmark's embedded store; a filled one is used again")
	server  = flag.String("postgres", "", "the benchmark is of this PostgreSQL database, which is used again; new: of one of its own")
	anew    = flag.Bool("anew", false, "the index of a store that is used again is made anew")
	guarded = flag.Bool("acts", false, "the events are guarded acts, and lists of acts and statistics are measured")
	named   = flag.Bool("columns", false, "with -acts: the organization has two columns, and conditions on them are measured")
)

// BenchmarkIndex fills a ledger of 200 agents and 500 tools with a Zipf distribution, builds its index and reads
// first pages. It reports events per second, bytes per event and percentiles.
func BenchmarkIndex(b *testing.B) {
	engine := benchEngine(b)
	s := filledService(b, engine)
	o := index.Options{Ledgers: s.Ledgers, Store: engine}
	if *named {
		o.Columns = func(context.Context, *log.State) ([]index.Column, error) {
			return []index.Column{{Path: "amount_usd"}, {Path: "order_id"}}, nil
		}
	}
	x := index.New(o)
	if *anew {
		if err := x.Rebuild(b.Context(), red); err != nil {
			b.Fatal(err)
		}
	}
	began, used := time.Now(), processorTime(b)
	var longest time.Duration
	steps := 0
	for more := true; more; steps++ {
		step := time.Now()
		var err error
		if more, err = x.Advance(b.Context(), red); err != nil {
			b.Fatal(err)
		}
		longest = max(longest, time.Since(step))
	}
	if steps > 1 {
		took, used := time.Since(began), processorTime(b)-used
		b.Run("index", func(b *testing.B) {
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(took.Seconds(), "s")
			b.ReportMetric(longest.Seconds(), "longest-step-s")
			b.ReportMetric(float64(used.Nanoseconds())/1000/float64(*events), "cpu-µs/event")
			all := 0.0
			for kind, bytes := range (&sized{Engine: engine}).bytes(b, red) { // keys and values, without the engine's own
				b.ReportMetric(bytes/float64(*events), strings.TrimPrefix(string(kind), "derived/")+"-B/event")
				all += bytes
			}
			b.ReportMetric(all/float64(*events), "B/event")
			for range b.N {
			}
		})
	}
	if *guarded {
		measureActs(b, x)
		return
	}
	for _, q := range benchQueries() {
		measure(b, x, q.name, q.query)
	}
	for range b.N {
	}
}

// filledService returns a service with the benchmark's ledger, which is filled unless the engine has it already.
func filledService(b *testing.B, engine storage.Engine) *ledgertest.Service {
	key, err := seal.KeyFromSecret(strings.Repeat("A", 43) + "=")
	if err != nil {
		b.Fatal(err)
	}
	s := ledgertest.OnSealed(b, engine, key)
	if head, err := engine.Head(b.Context(), red); err == nil && head.Size == id.Index(*events) {
		return s.Adopted(b, engine, red)
	}
	s.Found(b, red)
	f := newFiller(b, engine, red, 200, 500)
	if *guarded {
		f.make = (&guardedActs{filler: f}).next
	}
	f.keep, f.pad = false, strings.Repeat(" of the customer is overdue", 8)
	began := time.Now()
	f.append(*events)
	b.Logf("filled: %d events, %.0f/s", *events, float64(*events)/time.Since(began).Seconds())
	if err := s.Ledgers.Close(); err != nil {
		b.Fatal(err)
	}
	return s.Adopted(b, engine, red)
}

func benchEngine(b *testing.B) storage.Engine {
	switch *server {
	case "":
	case "new":
		return enginetest.Postgres(b)
	default:
		e, err := pgstore.Open(b.Context(), pgstore.Options{URL: *server})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { e.Close() })
		return e
	}
	dir := *storeIn
	if dir == "" {
		dir = b.TempDir()
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		b.Fatal(err)
	}
	e, err := pebblestore.Open(pebblestore.Options{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { e.Close() })
	return e
}

// sized counts the bytes of an index.
type sized struct{ storage.Engine }

func (s *sized) bytes(b *testing.B, t id.Tenant) map[storage.Kind]float64 {
	byKind := make(map[storage.Kind]float64)
	for r, err := range storage.PartitionOf(context.Background(), s.Engine, t) {
		if err != nil {
			b.Fatal(err)
		}
		if r.Kind.Derived() {
			byKind[r.Kind] += float64(len(r.Kind) + len(r.Key) + len(r.Value))
		}
	}
	return byKind
}

// processorTime returns the processor time of the process.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// guardedActs makes up guarded acts: intents and results, some that the policy denied, and of each hundred, two whose approval
// waits and five whose approval was decided.
type guardedActs struct {
	filler *filler
	acts   int
	due    [1 << 15][]told // by index modulo its length
}

func (g *guardedActs) next(at id.Index) made {
	f, r := g.filler, g.filler.random
	f.now += id.Instant(r.IntN(8000))
	var e told
	if due := &g.due[int(at)%len(g.due)]; len(*due) > 0 {
		e = (*due)[0]
		if rest := (*due)[1:]; len(rest) > 0 { // one event at a time
			next := (int(at) + 1) % len(g.due)
			g.due[next] = append(g.due[next], rest...)
		}
		*due = nil
		e.row.Index, e.row.Event, e.row.ReceivedAt = at, id.Event(fmt.Sprintf("evt_%026d", at)), f.now
		return e.make()
	}
	g.acts++
	tool := f.tools.Uint64()
	members := fmt.Sprintf(`"amount_usd":%d.%02d,"order_id":"A-%d",`, r.IntN(1000), r.IntN(100), g.acts)
	if g.acts%10_000 == 0 {
		members = fmt.Sprintf(`"amount_usd":%d,"order_id":"A-%d rare",`, 90_000+r.IntN(1000), g.acts)
	}
	e = told{evaluated: true, phase: "intent", members: members, row: index.Row{Index: at, Event: id.Event(fmt.Sprintf("evt_%026d", at)), ReceivedAt: f.now,
		Agent: id.Agent(fmt.Sprintf("agt_%d", f.agents.Uint64())), Tool: id.Tool(fmt.Sprintf("acme.area%d.tool%d", tool%7, tool)), Kind: "tool_call",
		Signer: event.SignerAgent, Trace: id.Trace(fmt.Sprintf("trc_%026d", g.acts/5)), Declared: id.Allow, Effective: id.Allow,
		Principal: principals[r.IntN(4)], Policy: "pol_1", Version: 1, Rule: fmt.Sprintf("rule-%d", tool%11)}}
	result := e
	result.evaluated, result.phase, result.intent, result.status = false, "result", e.row.Event, "ok"
	approval := told{row: index.Row{Agent: "system", Kind: "ledger_approval", Signer: event.SignerSystem, Trace: e.row.Trace,
		Declared: id.Allow, Effective: id.Allow, Principal: "operator"}, approval: fmt.Sprintf("apr_%026d", at), transition: "requested", intent: e.row.Event}
	switch n := r.IntN(1000); {
	case n < 30:
		e.row.Effective = id.Deny
	case n < 100: // about 10,000 of a million events wait
		e.row.Effective, result.row.Effective = id.AllowWithObligation, id.AllowWithObligation
		g.after(1, approval)
		if n < 50 {
			break
		}
		wait := 2 + r.IntN(len(g.due)/2)
		approval.intent, approval.row.Principal, approval.transition, approval.vote = "", fmt.Sprintf("acc_%d/session", r.IntN(12)), "approved", "approve"
		if n < 60 {
			approval.transition, approval.vote, result.status = "denied", "deny", "denied"
		} else if n < 65 {
			approval.row.Principal, approval.transition, approval.vote, result.status = "operator", "expired", "", "denied"
		}
		g.after(wait, approval)
		g.after(wait+1+r.IntN(50), result)
	case n < 995: // few are interrupted
		if n >= 970 {
			result.status = "error"
		}
		g.after(1+r.IntN(50), result)
	}
	return e.make()
}

// after makes an event due after n others.
func (g *guardedActs) after(n int, e told) {
	at := (int(g.filler.head.Size) + n) % len(g.due)
	g.due[at] = append(g.due[at], e)
}

// measureActs measures lists of acts by each filter, by two together, by rare and by absent values, and statistics.
func measureActs(b *testing.B, x *index.Index) {
	agent := func(n int) id.Agent { return id.Agent(fmt.Sprintf("agt_%d", n*7%200)) }
	tool := func(n int) string { t := n * 13 % 500; return fmt.Sprintf("acme.area%d.tool%d", t%7, t) }
	trace := func(n int) id.Trace { return id.Trace(fmt.Sprintf("trc_%026d", n*7919%(*events/12))) }
	approver := func(n int) string { return fmt.Sprintf("acc_%d", n%12) }
	end, err := x.List(b.Context(), red, index.Query{Limit: 1})
	if err != nil {
		b.Fatal(err)
	}
	last := end.Rows[0].ReceivedAt
	at := func(n int) index.Bound { return index.Bound{Given: true, At: last - id.Instant(n*7919%*events)*3600} }
	filters := []struct {
		name   string
		filter func(n int) index.Filter
	}{
		{"none", func(int) index.Filter { return index.Filter{} }},
		{"agent", func(n int) index.Filter { return index.Filter{Agent: agent(n)} }},
		{"tool", func(n int) index.Filter { return index.Filter{Tool: tool(n)} }},
		{"tool glob", func(n int) index.Filter { return index.Filter{Tool: fmt.Sprintf("acme.area%d.*", n%7)} }},
		{"kind", func(int) index.Filter { return index.Filter{Kind: "tool_call"} }},
		{"decision", func(int) index.Filter { return index.Filter{Effective: id.Deny} }},
		{"declared", func(int) index.Filter { return index.Filter{Declared: id.Allow} }},
		{"trace", func(n int) index.Filter { return index.Filter{Trace: trace(n)} }},
		{"principal", func(n int) index.Filter { return index.Filter{Principal: principals[n%4]} }},
		{"signer", func(int) index.Filter { return index.Filter{Signer: event.SignerAgent} }},
		{"time", func(n int) index.Filter { return index.Filter{From: at(n)} }},
		{"outcome done", func(int) index.Filter { return index.Filter{Outcome: index.Done} }},
		{"outcome failed", func(int) index.Filter { return index.Filter{Outcome: index.Failed} }},
		{"outcome refused", func(int) index.Filter { return index.Filter{Outcome: index.Refused} }},
		{"outcome denied", func(int) index.Filter { return index.Filter{Outcome: index.Denied} }},
		{"outcome expired", func(int) index.Filter { return index.Filter{Outcome: index.Expired} }},
		{"outcome waiting", func(int) index.Filter { return index.Filter{Outcome: index.Waiting} }},
		{"outcome open", func(int) index.Filter { return index.Filter{Outcome: index.Open} }},
		{"outcome cancelled (absent)", func(int) index.Filter { return index.Filter{Outcome: index.Cancelled} }},
		{"approver", func(n int) index.Filter { return index.Filter{Approver: approver(n)} }},
		{"approver (absent)", func(n int) index.Filter { return index.Filter{Approver: "acc_none"} }},
		{"agent, outcome refused", func(n int) index.Filter { return index.Filter{Agent: agent(n), Outcome: index.Refused} }},
		{"tool, outcome waiting", func(n int) index.Filter { return index.Filter{Tool: tool(n), Outcome: index.Waiting} }},
		{"tool, approver", func(n int) index.Filter { return index.Filter{Tool: tool(n), Approver: approver(n)} }},
		{"approver, outcome refused", func(n int) index.Filter { return index.Filter{Approver: approver(n), Outcome: index.Refused} }},
		{"approver, outcome waiting (absent)", func(n int) index.Filter { return index.Filter{Approver: approver(n), Outcome: index.Waiting} }},
		{"principal, outcome failed", func(n int) index.Filter { return index.Filter{Principal: principals[n%4], Outcome: index.Failed} }},
		{"agent, trace", func(n int) index.Filter { return index.Filter{Agent: agent(n), Trace: trace(n)} }},
		{"time, outcome refused", func(n int) index.Filter { return index.Filter{To: at(n), Outcome: index.Refused} }},
	}
	for _, f := range filters {
		measure(b, x, f.name, func(n int) index.Query {
			q := index.Query{Filter: f.filter(n), Limit: 100, Ascending: n%2 == 1}
			q.Acts = true
			return q
		})
	}
	for _, kind := range []string{"", "ledger_approval"} {
		report(b, strings.TrimSpace("links of events "+kind), 100, func(n int) int {
			page, err := x.List(b.Context(), red, index.Query{Filter: index.Filter{Kind: kind, From: at(n)}, Limit: 100, Ascending: true})
			if err != nil {
				b.Fatal(err)
			}
			acts, err := x.ActsOf(b.Context(), red, indices(page.Rows))
			if err != nil {
				b.Fatal(err)
			}
			return len(acts)
		})
	}
	if *named {
		measureConditions(b, x)
	}
	ranges := []struct {
		name string
		from index.Bound
	}{{"an hour", index.Bound{Given: true, At: last - 3_600_000}}, {"a day", index.Bound{Given: true, At: last - 24*3_600_000}},
		{"a week", index.Bound{Given: true, At: last - 7*24*3_600_000}}, {"all", index.Bound{}}}
	for _, r := range ranges {
		for _, d := range append([]index.Dimension{""}, index.Dimensions()...) {
			var by []index.Dimension
			if d != "" {
				by = []index.Dimension{d}
			}
			measureStats(b, x, fmt.Sprintf("stats of %s by %s", r.name, d), func(int) index.Filter { return index.Filter{From: r.from} }, by)
		}
	}
	measureStats(b, x, "stats of all by agent, rule", func(int) index.Filter { return index.Filter{} }, []index.Dimension{index.ByAgent, index.ByRule})
	measureStats(b, x, "stats of all by outcome, hour", func(int) index.Filter { return index.Filter{} }, []index.Dimension{index.ByOutcome, index.ByHour})
	for _, f := range filters[1:] {
		measureStats(b, x, "stats of "+f.name+" by tool", f.filter, []index.Dimension{index.ByTool})
	}
}

func indices(rows []index.Row) (at []id.Index) {
	for i := range rows {
		at = append(at, rows[i].Index)
	}
	return at
}

// measureConditions measures lists and statistics by values of columns: frequent, rare and absent ones.
func measureConditions(b *testing.B, x *index.Index) {
	for _, text := range []string{"amount_usd>500", "amount_usd>=999.9", "amount_usd>80000", "amount_usd>100000", "order_id=A-4711", "order_id~rare", "order_id~absent"} {
		c, err := column.ParseCondition(text)
		if err != nil {
			b.Fatal(err)
		}
		f := index.Filter{Columns: []column.Condition{c}}
		measure(b, x, text, func(n int) index.Query {
			q := index.Query{Filter: f, Limit: 100, Ascending: n%2 == 1}
			q.Acts = true
			return q
		})
		measureStats(b, x, "stats of "+text, func(int) index.Filter { return f }, nil)
	}
}

// measureStats reports the percentiles of statistics.
func measureStats(b *testing.B, x *index.Index, name string, filter func(int) index.Filter, by []index.Dimension) {
	report(b, name, 50, func(n int) int {
		found, err := x.Stats(b.Context(), red, filter(n), by)
		if err != nil {
			b.Fatal(err)
		}
		return int(found.Acts)
	})
}

type benchQuery struct {
	name  string
	query func(n int) index.Query
}

func benchQueries() []benchQuery {
	agent := func(n int) id.Agent { return id.Agent(fmt.Sprintf("agt_%d", n*7%200)) }
	tool := func(n int) string { t := n * 13 % 500; return fmt.Sprintf("acme.area%d.tool%d", t%7, t) }
	of := func(f func(n int) index.Filter) func(n int) index.Query {
		return func(n int) index.Query { return index.Query{Filter: f(n), Limit: 100, Ascending: n%2 == 1} }
	}
	traceOf := func(n int) id.Trace { return id.Trace(fmt.Sprintf("trc_%d", (n*7919)%(*events/5))) }
	at := func(n int) index.Bound {
		return index.Bound{Given: true, At: 1_790_000_000_000 + id.Instant(n*7919%*events)*20}
	}
	return []benchQuery{
		{"no filter", of(func(int) index.Filter { return index.Filter{} })},
		{"agent", of(func(n int) index.Filter { return index.Filter{Agent: agent(n)} })},
		{"tool", of(func(n int) index.Filter { return index.Filter{Tool: tool(n)} })},
		{"tool glob", of(func(n int) index.Filter { return index.Filter{Tool: fmt.Sprintf("acme.area%d.*", n%7)} })},
		{"kind", of(func(int) index.Filter { return index.Filter{Kind: "llm_invocation"} })},
		{"decision", of(func(int) index.Filter { return index.Filter{Effective: id.Deny} })},
		{"trace", of(func(n int) index.Filter { return index.Filter{Trace: traceOf(n)} })},
		{"principal", of(func(n int) index.Filter { return index.Filter{Principal: principals[n%4]} })},
		{"signer", of(func(int) index.Filter { return index.Filter{Signer: "bridge"} })},
		{"time", of(func(n int) index.Filter { return index.Filter{From: at(n)} })},
		{"agent, tool", of(func(n int) index.Filter { return index.Filter{Agent: agent(n), Tool: tool(n)} })},
		{"agent, decision", of(func(n int) index.Filter { return index.Filter{Agent: agent(n), Effective: id.Deny} })},
		{"agent, unknown tool", of(func(n int) index.Filter { return index.Filter{Agent: agent(n), Tool: "acme.none"} })},
		{"agent, trace", of(func(n int) index.Filter { return index.Filter{Agent: agent(n), Trace: traceOf(n)} })},
		{"agent, time", of(func(n int) index.Filter { return index.Filter{Agent: agent(n), To: at(n)} })},
		{"kind, signer", of(func(int) index.Filter { return index.Filter{Kind: "message", Signer: "system"} })},
	}
}

// measure reports the percentiles of first pages.
func measure(b *testing.B, x *index.Index, name string, query func(int) index.Query) {
	report(b, name, 300, func(n int) int {
		page, err := x.List(b.Context(), red, query(n))
		if err != nil {
			b.Fatal(err)
		}
		return len(page.Rows)
	})
}

// report reports the percentiles of calls after some to warm up, their mean processor time, and how many events or acts one found.
func report(b *testing.B, name string, calls int, call func(n int) (found int)) {
	b.Run(strings.NewReplacer(" ", "_", ",", "").Replace(name), func(b *testing.B) {
		for n := range calls / 10 {
			call(n)
		}
		var took []time.Duration
		found, used := 0, processorTime(b)
		for n := range calls {
			began := time.Now()
			found += call(n)
			took = append(took, time.Since(began))
		}
		used = processorTime(b) - used
		slices.Sort(took)
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(ms(took[(calls*50+99)/100-1]), "p50-ms")
		b.ReportMetric(ms(took[(calls*99+99)/100-1]), "p99-ms")
		b.ReportMetric(ms(used)/float64(calls), "cpu-ms")
		b.ReportMetric(float64(found/calls), "found")
		for range b.N {
		}
	})
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// BenchmarkSearch looks for a text that no event of a filled ledger has, until the ledger's end.
func BenchmarkSearch(b *testing.B) {
	engine := benchEngine(b)
	s := filledService(b, engine)
	x := index.New(index.Options{Ledgers: s.Ledgers, Store: engine})
	for b.Loop() {
		for _, ascending := range []bool{false, true} {
			page, err := x.List(b.Context(), red, index.Query{Text: "no such text", Envelopes: true, Limit: 100, Ascending: ascending, Longest: time.Hour})
			if err != nil || page.Next != nil || len(page.Rows) > 0 || page.Looked != *events {
				b.Fatalf("got %d rows, looked at %d of %d, %v", len(page.Rows), page.Looked, page.End, err)
			}
		}
	}
	b.ReportMetric(float64(2**events*b.N)/b.Elapsed().Seconds(), "events/s")
}
