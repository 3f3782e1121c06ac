package index_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/pgstore"
)

var (
	events  = flag.Int("events", 100_000, "events of the benchmark")
	storeIn = flag.String("store", "", "folder of the benchmark's embedded store; a filled one is used again")
	server  = flag.String("postgres", "", "the benchmark is of this PostgreSQL database, which is used again; new: of one of its own")
	anew    = flag.Bool("anew", false, "the index of a store that is used again is made anew")
)

// BenchmarkIndex fills a ledger of 200 agents and 500 tools with a Zipf distribution, builds its index and reads
// first pages. It reports events per second, bytes per event and percentiles.
func BenchmarkIndex(b *testing.B) {
	engine := benchEngine(b)
	s := filledService(b, engine)
	x := index.New(index.Options{Ledgers: s.Ledgers, Store: engine})
	if *anew {
		if err := x.Rebuild(b.Context(), red); err != nil {
			b.Fatal(err)
		}
	}
	began := time.Now()
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
		b.Logf("indexed: %.0f events/s, longest step %v", float64(*events)/time.Since(began).Seconds(),
			longest.Round(time.Millisecond))
		counted := &sized{Engine: engine}
		b.Logf("bytes an event: %.1f (keys and values, without the engine's own)", counted.bytes(b, red)/float64(*events))
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

func (s *sized) bytes(b *testing.B, t id.Tenant) (total float64) {
	for r, err := range storage.PartitionOf(context.Background(), s.Engine, t) {
		if err != nil {
			b.Fatal(err)
		}
		if r.Kind.Derived() {
			total += float64(len(r.Kind) + len(r.Key) + len(r.Value))
		}
	}
	return total
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

// measure reports the percentiles of 300 first pages, after 20 to warm up.
func measure(b *testing.B, x *index.Index, name string, query func(int) index.Query) {
	var took []time.Duration
	rows := 0
	for n := range 320 {
		began := time.Now()
		page, err := x.List(b.Context(), red, query(n))
		if err != nil {
			b.Fatal(err)
		}
		if rows += len(page.Rows); n >= 20 {
			took = append(took, time.Since(began))
		}
	}
	slices.Sort(took)
	b.Logf("%-20s p50 %6.2f ms, p99 %6.2f ms, %d rows", name, ms(took[150]), ms(took[297]), rows/320)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
