package index_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

const (
	red  = ledgertest.Red
	blue = ledgertest.Blue
)

// filler writes ledgers below package log: entries, chain and tree are real, and signatures are missing. A test thus
// gets a ledger of many events in a second.
type filler struct {
	t      testing.TB
	engine storage.Engine
	tenant id.Tenant
	head   storage.Head
	tree   tlog.Builder
	random *rand.Rand
	agents *rand.Zipf
	tools  *rand.Zipf
	now    id.Instant
	falls  bool // received_at decreases sometimes
	traces int  // number of traces; 0: a fifth of the events
	pad    string

	make   func(at id.Index) made // makes up the events; nil: addEvent does
	stored id.Index               // the events before the batch that is being made

	rows  []index.Row // of all events, when keep is true
	texts []string    // record and envelope in lower case
	keep  bool
}

// newFiller fills an empty ledger, which must have no other writer.
func newFiller(t testing.TB, engine storage.Engine, tenant id.Tenant, agents, tools uint64) *filler {
	t.Helper()
	head, err := engine.Head(t.Context(), tenant)
	if err != nil || head.Size != 0 {
		t.Fatalf("got %+v, %v", head, err)
	}
	r := rand.New(rand.NewPCG(1, uint64(tenant)))
	return &filler{t: t, engine: engine, tenant: tenant, head: head, random: r, keep: true, now: 1_790_000_000_000,
		agents: rand.NewZipf(r, 1.1, 4, agents-1), tools: rand.NewZipf(r, 1.1, 4, tools-1)}
}

// append writes n events, several at a time.
func (f *filler) append(n int) {
	f.t.Helper()
	for n > 0 {
		some := min(n, 1024)
		f.stored = f.head.Size
		b := storage.Batch{Tenant: f.tenant, Expect: f.head}
		for range some {
			f.addEvent(&b)
		}
		f.head.Root = f.tree.Root()
		b.Head = f.head
		if err := f.engine.Append([]storage.Batch{b}).Wait()[0]; err != nil {
			f.t.Fatal(err)
		}
		n -= some
	}
}

var (
	kinds      = []string{"tool_call", "tool_call", "tool_call", "llm_invocation", "message"}
	decisions  = []id.Decision{id.Allow, id.Allow, id.Allow, id.Allow, id.Deny, id.AllowWithObligation}
	signers    = []event.Signer{event.SignerAgent, event.SignerAgent, event.SignerAgent, event.SignerBridge, event.SignerSystem}
	principals = []string{"svc", "ops@example.com", "Zoë \"Q\"", "nightly job", "acc_1", "acc_1/ctk_2", "acc_12"}
)

// behalves are values of on_behalf_of: two issuers have a subject of the same name, and one actor is another subject.
var behalves = []string{
	`{"actors":[{"subject":"u2"}],"issuer":"https://a.example","subject":"u1"}`,
	`{"issuer":"https://b.example","subject":"u1"}`,
	`{"issuer":"https://a.example","subject":"u2"}`,
	`{"issuer":"https://a.example","subject":"spiffe://a.example/w"}`,
}

// nextRow makes up an event.
func (f *filler) nextRow() index.Row {
	n := f.head.Size
	f.now += id.Instant(f.random.IntN(40))
	r := index.Row{Index: n, Event: id.Event(fmt.Sprintf("evt_%d_%08d", f.tenant, n)), ReceivedAt: f.now,
		Agent: id.Agent(fmt.Sprintf("agt_%d", f.agents.Uint64())), Kind: pick(f.random, kinds),
		Declared: pick(f.random, decisions), Signer: pick(f.random, signers),
		Trace: id.Trace(fmt.Sprintf("trc_%d", f.random.IntN(int(n)/5+1))), Principal: pick(f.random, principals)}
	if f.traces > 0 {
		r.Trace = id.Trace(fmt.Sprintf("trc_%d", f.random.IntN(f.traces)))
	}
	if n%7 == 3 { // a few events of each caller, as in a trace of several services
		r.Caller = id.Trace(fmt.Sprintf("%032x", n/70+1))
	}
	if n%5 == 1 {
		r.OnBehalfOf = pick(f.random, behalves)
		r.Verified = n%2 == 0
	}
	r.Effective = r.Declared.Tighten(pick(f.random, decisions))
	if r.Kind != "message" {
		tool := f.tools.Uint64()
		r.Tool = id.Tool(fmt.Sprintf("acme.area%d.tool%d", tool%7, tool))
		r.Rule = fmt.Sprintf("rule-%d", tool%11)
	}
	if f.falls && f.random.IntN(5000) == 0 {
		f.now -= 60_000
		r.ReceivedAt, r.Kind, r.Tool, r.Rule, r.Signer = f.now, log.ClockKind, "", "", event.SignerSystem
	}
	return r
}

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

// made is an event that a test made up.
type made struct {
	row              index.Row
	record, envelope []byte
	erases           []id.Range
}

func (f *filler) addEvent(b *storage.Batch) {
	if f.make != nil {
		f.addMade(b, f.make(f.head.Size))
		return
	}
	r := f.nextRow()
	seen, signed := "", ""
	if r.Caller != "" {
		member := fmt.Sprintf(`,"traceparent":"00-%s-00f067aa0ba902b7-01"`, r.Caller)
		if seen = member; r.Index%2 == 0 {
			seen, signed = "", member
		}
	}
	stated, known := "", ""
	if r.OnBehalfOf != "" {
		if stated = `,"on_behalf_of":` + r.OnBehalfOf; r.Verified {
			known = `"on_behalf_of":"verified",`
		}
	}
	record := fmt.Appendf(nil, `{"event_id":"%s",%s"policy":{"declared":"%s","effective":"%s","rule_id":%s},"signer":"%s"%s}`,
		r.Event, known, r.Declared, r.Effective, orNull(r.Rule), r.Signer, seen)
	envelope := fmt.Appendf(nil, `{"action_kind":"%s","actor_principal":%s%s,"payload":{"amount":%d,"parent_event_id":"evt_%d_%08d","text":"Invoice%s"}%s}`,
		r.Kind, strings.ReplaceAll(fmt.Sprintf("%q", r.Principal), `\u00eb`, "ë"), stated, f.random.IntN(1000), f.tenant, r.Index-1, f.pad, signed)
	f.addMade(b, made{row: r, record: record, envelope: envelope})
}

func (f *filler) addMade(b *storage.Batch, m made) {
	r, record, envelope := m.row, m.record, m.envelope
	entry := event.Entry{Prev: f.head.Last, Record: event.RecordHash(record), Seq: r.Index.Sequence()}
	r.Hash = entry.Hash()
	b.Events = append(b.Events, storage.Event{Index: r.Index, ID: r.Event, Entry: storage.Entry{Prev: entry.Prev, Record: entry.Record},
		Columns: storage.Columns{ReceivedAt: r.ReceivedAt, Agent: r.Agent, Trace: r.Trace, Tool: r.Tool, ActionKind: r.Kind, Effective: r.Effective, Disclosure: id.DiscloseRecord},
		Record:  record, Envelope: envelope, Erases: m.erases})
	f.head.Last, f.head.LastReceived = r.Hash, r.ReceivedAt
	f.head.Size++
	for _, t := range f.tree.Append(nil, r.Hash) {
		b.Tiles = append(b.Tiles, storage.Tile{Level: t.Level, Index: t.Index, Hashes: t.Hashes, Root: t.Root})
	}
	if f.keep {
		f.rows = append(f.rows, r)
		f.texts = append(f.texts, strings.ToLower(string(record)+string(envelope)))
	}
}

func orNull(s string) string {
	if s == "" {
		return "null"
	}
	return `"` + s + `"`
}

// world has filled ledgers of two organizations and their index.
type world struct {
	*ledgertest.Service
	t      testing.TB
	engine storage.Engine
	index  *index.Index
	rows   map[id.Tenant][]index.Row
	texts  map[id.Tenant][]string
	filled map[id.Tenant]*filler
}

// newWorld fills the ledgers of red and blue. Blue has at most maxBlue events: tests are about the size of red's
// ledger, and blue's shows that the other organization is not affected.
func newWorld(t testing.TB, engine storage.Engine, events int, change ...func(*filler)) *world {
	t.Helper()
	s := ledgertest.On(t, engine)
	w := &world{t: t, engine: engine, rows: map[id.Tenant][]index.Row{}, texts: map[id.Tenant][]string{},
		filled: map[id.Tenant]*filler{}}
	for _, tenant := range []id.Tenant{red, blue} {
		s.Found(t, tenant)
		f := newFiller(t, engine, tenant, 20, 50)
		for _, c := range change {
			c(f)
		}
		if tenant == blue {
			events = min(events, maxBlue)
		}
		f.append(events)
		w.rows[tenant], w.texts[tenant], w.filled[tenant] = f.rows, f.texts, f
	}
	if err := s.Ledgers.Close(); err != nil {
		t.Fatal(err)
	}
	w.Service = s.Adopted(t, engine, red, blue)
	w.index = w.open(engine)
	return w
}

const maxBlue = 3 * index.ChunkEvents

// newFillerBehind continues a filled ledger that has had no other writer since.
func newFillerBehind(w *world, tenant id.Tenant) *filler {
	f := w.filled[tenant]
	head, err := w.engine.Head(w.t.Context(), tenant)
	if err != nil {
		w.t.Fatal(err)
	}
	f.head, f.rows, f.texts = head, nil, nil
	return f
}

// reopen loads the ledgers as they are in the store.
func (w *world) reopen() {
	w.t.Helper()
	if err := w.Ledgers.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.Service = w.Service.Adopted(w.t, w.engine, red, blue)
	w.index = w.open(w.engine)
}

func (w *world) open(store index.Store) *index.Index {
	return index.New(index.Options{Ledgers: w.Ledgers, Store: store, Clock: w.Clock})
}

// follow makes all due steps.
func (w *world) follow() {
	w.t.Helper()
	for _, tenant := range []id.Tenant{red, blue} {
		for more := true; more; {
			var err error
			if more, err = w.index.Advance(w.t.Context(), tenant); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// want is the result of a naive scan.
func (w *world) want(tenant id.Tenant, q index.Query) (page []index.Row) {
	rows := w.rows[tenant]
	for i := range rows {
		r := &rows[i]
		if !q.Ascending {
			r = &rows[len(rows)-1-i]
		}
		behind := q.After == nil || q.Ascending && r.Index > *q.After || !q.Ascending && r.Index < *q.After
		if behind && w.wants(tenant, &q, r) {
			page = append(page, *r)
		}
		if len(page) == q.Limit {
			break
		}
	}
	return page
}

func (w *world) wants(tenant id.Tenant, q *index.Query, r *index.Row) bool {
	text := w.texts[tenant][r.Index]
	if !q.Envelopes {
		text, _, _ = strings.Cut(text, "}{")
	}
	return (q.Agent == "" || r.Agent == q.Agent) && (q.Kind == "" || r.Kind == q.Kind) && (q.Declared == 0 || r.Declared == q.Declared) &&
		(q.Effective == 0 || r.Effective == q.Effective) && (q.Trace == "" || r.Trace == q.Trace || q.ByCaller && r.Caller == q.Trace) &&
		(q.Principal == "" || r.Principal == q.Principal) && (q.Signer == "" || r.Signer == q.Signer) &&
		(q.Subject == "" || strings.HasSuffix(r.OnBehalfOf, `"subject":"`+q.Subject+`"}`) && strings.Contains(r.OnBehalfOf, `"issuer":"`+q.Issuer)) &&
		(q.Actor == "" || r.Signer == event.SignerSystem && strings.Split(r.Principal, "/")[0] == q.Actor) &&
		(q.Tool == "" || textcheck.MatchTool(q.Tool, string(r.Tool))) && (q.Text == "" || strings.Contains(text, q.Text)) &&
		(!q.From.Given || w.reached(tenant, q.From, r)) && (!q.To.Given || !w.reached(tenant, q.To, r))
}

// reached reports whether a row is at or after a bound. If times decrease, a row is compared by its own time.
func (w *world) reached(_ id.Tenant, b index.Bound, r *index.Row) bool {
	if b.At != 0 {
		return r.ReceivedAt >= b.At
	}
	return r.Index >= b.Index
}

// randomQuery makes up a query that sometimes finds something.
func (w *world) randomQuery(r *rand.Rand, tenant id.Tenant) index.Query {
	rows := w.rows[tenant]
	like := rows[r.IntN(len(rows))]
	q := index.Query{Ascending: r.IntN(2) == 0, Limit: pick(r, []int{1, 2, 7, 100})}
	for range r.IntN(4) {
		switch r.IntN(12) {
		case 0:
			q.Agent = like.Agent
		case 1:
			q.Tool = string(like.Tool)
		case 2:
			q.Tool = pick(r, []string{"acme.*.*", "acme.area3.**", "**", "*.area1.*", "acme.area2.tool2", "acme.*", "other.**"})
		case 3:
			q.Kind = like.Kind
		case 4:
			q.Declared = like.Declared
		case 5:
			q.Effective = like.Effective
		case 6:
			q.Trace, q.ByCaller = cmp.Or(like.Caller, like.Trace), r.IntN(3) > 0
		case 7:
			q.Principal = like.Principal
		case 8:
			q.Signer = like.Signer
		case 11:
			q.Subject, q.Issuer = pick(r, []string{"u1", "u2", "u3", "spiffe://a.example/w"}), pick(r, []string{"", "", "https://a.example", "https://b.example"})
		case 9:
			q.Actor = pick(r, []string{"acc_1", "acc_12", "acc_1/ctk_2", "svc"})
		case 10:
			q.From, q.To = randomBound(r, rows), randomBound(r, rows)
		}
	}
	return q
}

func randomBound(r *rand.Rand, rows []index.Row) index.Bound {
	at := rows[r.IntN(len(rows))]
	return pick(r, []index.Bound{{}, {Given: true, At: at.ReceivedAt}, {Given: true, Index: at.Index}})
}

// quiet drops log lines.
var quiet = slog.New(slog.DiscardHandler)

// sendBy appends events of an agent, many in one submission.
func (w *world) sendBy(agent *ledgertest.Agent, tenant id.Tenant, n int) {
	w.t.Helper()
	for begin := 0; begin < n; begin += 256 {
		_, err := w.Ledgers.Append(w.t.Context(), tenant, func(_ context.Context, s *log.State) (log.Submission, error) {
			var drafts []log.Draft
			for i := begin; i < min(n, begin+256); i++ {
				e := agent.Envelope(w.t, tenant, fmt.Sprint("sent-", s.Size(), "-", i), nil)
				drafts = append(drafts, log.NewDraft(s.Identity(), e, agent.Attestation(e)))
			}
			return log.Submission{Drafts: drafts}, nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
}
