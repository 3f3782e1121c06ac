package index_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/storage"
)

// Traces and single events equal those of a naive scan.
func TestTracesAndHashes(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := newWorld(t, open(t), 2*index.ChunkEvents+300)
		w.follow()
		for _, tenant := range []id.Tenant{red, blue} {
			for _, at := range []int{0, 5000, index.ChunkEvents, len(w.rows[tenant]) - 1} {
				want := w.rows[tenant][at]
				if got, err := w.index.Find(t.Context(), tenant, want.Hash.String()); err != nil || got != want {
					t.Errorf("event %d by its hash: got %+v, %v", at, got, err)
				}
				if got, err := w.index.Find(t.Context(), red+blue-tenant, want.Hash.String()); !fault.Is(err, fault.NotFound) {
					t.Errorf("of the other organization: got %+v, %v", got, err)
				}
				w.checkTrace(tenant, want.Trace)
			}
			w.checkTraces(tenant)
		}
	})
}

// checkCounts compares counts by random filters and dimensions with a naive count.
func (w *world) checkCounts(tenant id.Tenant, s *story, acts []index.Row, approvals []asked) {
	w.t.Helper()
	for range 12 {
		f, groupings := s.randomFilter(acts), [][]index.Dimension{s.randomDimensions(), s.randomDimensions()}
		var all tally
		groups := []map[index.Group]*tally{{}, {}}
		for i := range acts {
			r := &acts[i]
			if !selects(&f, r) {
				continue
			}
			all.add(r, approvals[i])
			for n, by := range groupings {
				for g := range groupsOf(r, by) {
					if groups[n][g] == nil {
						groups[n][g] = &tally{}
					}
					groups[n][g].add(r, approvals[i])
				}
			}
		}
		got, err := w.index.Stats(w.t.Context(), tenant, f, groupings...)
		if err != nil {
			w.t.Fatalf("%+v by %v: %v", f, groupings, err)
		}
		for o := index.Done; o <= index.Open; o++ {
			if got.Outcomes[o] != all.outcomes[o] {
				w.t.Fatalf("%+v: got %d %v, want %d", f, got.Outcomes[o], o, all.outcomes[o])
			}
		}
		if got.Acts != all.acts || got.Approvals != all.approvals() || len(got.Outcomes) != int(index.Open) || len(got.Counts) != len(groupings) {
			w.t.Fatalf("%+v: got %d acts, %+v, want %d, %+v", f, got.Acts, got.Approvals, all.acts, all.approvals())
		}
		for n, by := range groupings {
			counts := got.Counts[n]
			if len(by) > 0 && len(counts) != len(groups[n]) {
				w.t.Fatalf("%+v by %v: got %d groups, want %d", f, by, len(counts), len(groups[n]))
			}
			for i, c := range counts {
				want := groups[n][c.Group]
				if want == nil || c.Acts != want.acts || c.Approvals != want.approvals() || i > 0 && c.Acts > counts[i-1].Acts {
					w.t.Fatalf("%+v by %v: got %+v, want %+v", f, by, c, want)
				}
			}
		}
	}
}

// randomFilter makes up a filter that often selects something.
func (s *story) randomFilter(acts []index.Row) (f index.Filter) {
	r := s.random
	like := acts[r.IntN(len(acts))]
	for range r.IntN(4) {
		switch r.IntN(12) {
		case 0:
			f.Agent = like.Agent
		case 1:
			f.Tool = pick(r, []string{"acme.pay", "acme.*", "acme.mail.**", "**", "acme.none"})
		case 2:
			f.Kind = pick(r, []string{"tool_call", "tool_call", "llm_invocation"})
		case 3:
			f.Effective = like.Effective
		case 4:
			f.Declared = like.Declared
		case 5:
			f.Trace = like.Trace
		case 6:
			f.Principal = pick(r, []string{"svc", "ops", "acc_1"})
		case 7:
			f.Signer = like.Signer
		case 8:
			f.Outcome = like.Act.Outcome
		case 9:
			f.Approver = pick(r, []string{"acc_1", "acc_2", "operator", "nobody"})
		default:
			f.From, f.To = randomBound(r, acts), randomBound(r, acts)
		}
	}
	return f
}

func (s *story) randomDimensions() []index.Dimension {
	all := index.Dimensions()
	s.random.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	return all[:s.random.IntN(len(all)+1)]
}

func selects(f *index.Filter, r *index.Row) bool {
	reached := func(b index.Bound) bool { return b.At != 0 && r.ReceivedAt >= b.At || b.At == 0 && r.Index >= b.Index }
	return (f.Agent == "" || r.Agent == f.Agent) && (f.Tool == "" || textcheck.MatchTool(f.Tool, string(r.Tool))) && (f.Kind == "" || r.Kind == f.Kind) &&
		(f.Effective == 0 || r.Effective == f.Effective) && (f.Declared == 0 || r.Declared == f.Declared) && (f.Trace == "" || r.Trace == f.Trace) &&
		(f.Principal == "" || r.Principal == f.Principal) && (f.Signer == "" || r.Signer == f.Signer) && (f.Outcome == 0 || r.Act.Outcome == f.Outcome) &&
		(f.Approver == "" || slices.ContainsFunc(r.Act.Votes, func(v index.Vote) bool { return v.Account == f.Approver })) &&
		(!f.From.Given || reached(f.From)) && (!f.To.Given || !reached(f.To))
}

// groupsOf returns the groups of an act: one for each account that voted, if these are counted.
func groupsOf(r *index.Row, by []index.Dimension) map[index.Group]bool {
	var g index.Group
	groups := map[index.Group]bool{}
	for _, d := range by {
		switch d {
		case index.ByOutcome:
			g.Outcome = r.Act.Outcome
		case index.ByAgent:
			g.Agent = r.Agent
		case index.ByTool:
			g.Tool = r.Tool
		case index.ByDecision:
			g.Decision = r.Effective
		case index.ByDeclared:
			g.Declared = r.Declared
		case index.ByRule:
			g.Rule = r.Rule
		case index.ByHour:
			g.Hour = r.ReceivedAt / 3_600_000 * 3_600_000
		case index.ByDay:
			g.Day = r.ReceivedAt / 86_400_000 * 86_400_000
		}
	}
	if slices.Contains(by, index.ByApprover) {
		for _, v := range r.Act.Votes {
			g.Approver = v.Account
			groups[g] = true
		}
	}
	if len(groups) == 0 {
		groups[g] = true
	}
	return groups
}

// tally counts acts.
type tally struct {
	acts     uint64
	outcomes [index.Open + 1]uint64
	states   map[string]uint64
	done     uint64
	waits    []int64
}

func (t *tally) add(r *index.Row, a asked) {
	t.acts++
	t.outcomes[r.Act.Outcome]++
	if t.states == nil {
		t.states = map[string]uint64{}
	}
	t.states[a.state]++
	if r.Act.Outcome == index.Done && (a.state == "approved" || a.state == "consumed") {
		t.done++
	}
	if a.wait > 0 {
		t.waits = append(t.waits, a.wait)
	}
}

func (t *tally) approvals() index.Approvals {
	n := func(states ...string) (n uint64) {
		for _, s := range states {
			n += t.states[s]
		}
		return n
	}
	a := index.Approvals{Requested: t.acts - n(""), Waiting: n("requested", "voted", "pending"), Approved: n("approved", "consumed"), Refused: n("denied", "revoked"),
		Expired: n("expired"), Cancelled: n("cancelled", "invalidated"), Done: t.done, Median: shortest(t.waits, 50), P90: shortest(t.waits, 90)}
	return a
}

// shortest returns the smallest wait that is at least as long as a percentage of them.
func shortest(waits []int64, percent int) (found int64) {
	for _, wait := range waits {
		covered := 0
		for _, other := range waits {
			if other <= wait {
				covered++
			}
		}
		if 100*covered >= percent*len(waits) && (found == 0 || wait < found) {
			found = wait
		}
	}
	return found
}

func (w *world) checkTrace(tenant id.Tenant, trace id.Trace) {
	w.t.Helper()
	var want []index.Row
	for _, r := range w.rows[tenant] {
		if r.Trace == trace {
			want = append(want, r)
		}
	}
	got, parents, err := w.index.Tree(w.t.Context(), tenant, trace, index.Query{Limit: 1000})
	if err != nil || !slices.Equal(got.Rows, want) {
		w.t.Fatalf("%s: got %d events, %v, want %d", trace, len(got.Rows), err, len(want))
	}
	for i, r := range got.Rows { // each event names the one before it in the log
		below := i > 0 && got.Rows[i-1].Index+1 == r.Index
		if (parents[i] != "") != below || below && parents[i] != got.Rows[i-1].Event {
			w.t.Errorf("%s: got parent %q", r.Event, parents[i])
		}
	}
}

// checkTraces compares all pages of a list of traces.
func (w *world) checkTraces(tenant id.Tenant) {
	w.t.Helper()
	filter := index.Filter{Agent: "agt_3", Effective: id.Deny}
	q := index.Query{Filter: filter, Limit: 7}
	var want, got []id.Trace
	events := map[id.Trace]int{}
	for _, r := range slices.Backward(w.rows[tenant]) {
		events[r.Trace]++
		if w.wants(tenant, &q, &r) && !slices.Contains(want, r.Trace) {
			want = append(want, r.Trace)
		}
	}
	for more := true; more && len(got) < 60; {
		page, err := w.index.Traces(w.t.Context(), tenant, q)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, found := range page.Traces {
			if got = append(got, found.ID); found.Events != events[found.ID] || !found.Complete {
				w.t.Errorf("%s: got %d events, want %d", found.ID, found.Events, events[found.ID])
			}
		}
		q.After, more = page.Next, page.Next != nil
	}
	if len(got) == 0 || !slices.Equal(got, want[:min(len(want), len(got))]) {
		w.t.Errorf("got %v, want %v", got, want[:min(len(want), len(got))])
	}
}

// The follower indexes what is due of all ledgers: those that existed before its start and those that move.
func TestRun(t *testing.T) {
	w := newWorld(t, enginetest.Pebble(t), index.ChunkEvents+10)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { w.index.Run(ctx, quiet); close(ended) }()
	w.awaitPosition(red, 1)
	w.awaitPosition(blue, 1)
	for _, tenant := range []id.Tenant{red, blue} {
		w.sendEvents(tenant, index.ChunkEvents)
	}
	w.awaitPosition(red, 2)
	w.awaitPosition(blue, 2)
	stop()
	<-ended
}

// awaitPosition waits until a ledger's index has the given number of chunks.
func (w *world) awaitPosition(tenant id.Tenant, chunks int) {
	w.t.Helper()
	for w.t.Context().Err() == nil {
		columns, err := w.engine.Scan(w.t.Context(), tenant, "derived/index_columns", "", "", chunks)
		if err != nil {
			w.t.Fatal(err)
		}
		if len(columns) == chunks {
			return
		}
		time.Sleep(time.Millisecond) // between two looks
	}
}

// sendEvents appends events by package log.
func (w *world) sendEvents(tenant id.Tenant, n int) {
	w.t.Helper()
	agent := ledgertest.NewAgent()
	w.sendBy(agent, tenant, n)
}

// Statistics of a span that is empty, or that has no indexed event, read no record. So they have nothing rebuilt.
func TestCountOutsideOfIndex(t *testing.T) {
	w := newWorld(t, enginetest.Pebble(t), index.ChunkEvents+50, storyOf)
	w.follow()
	before := w.generations(red)
	last := w.rows[red][index.ChunkEvents+40].ReceivedAt
	at := func(n id.Index) index.Bound { return index.Bound{Given: true, Index: n} }
	for _, f := range []index.Filter{{From: at(30_000)}, {From: at(20_000), To: at(5)}, {From: at(7), To: at(7)}, {To: at(0)}, {From: at(index.ChunkEvents + 20)},
		{From: index.Bound{Given: true, At: last}}, {From: index.Bound{Given: true, At: last + 1_000_000_000}}, {To: index.Bound{Given: true, At: 1}}} {
		if _, err := w.index.Stats(t.Context(), red, f); err != nil {
			t.Errorf("from %+v to %+v: %v", f.From, f.To, err)
		}
		if _, err := w.index.List(t.Context(), red, index.Query{Filter: f, Limit: 10}); err != nil {
			t.Errorf("list from %+v to %+v: %v", f.From, f.To, err)
		}
	}
	w.follow()
	if after := w.generations(red); after != before {
		t.Errorf("generation %s was rebuilt as %s", before, after)
	}
}

// storyOf makes a filler write a story of acts.
func storyOf(f *filler) {
	f.make = (&story{filler: f, random: rand.New(rand.NewPCG(3, uint64(f.tenant))), now: 1_790_000_000_000}).next
}

// generations returns the generations that have columns.
func (w *world) generations(tenant id.Tenant) string {
	w.t.Helper()
	found, err := w.engine.Scan(w.t.Context(), tenant, "derived/index_columns", "", "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	names := map[string]bool{}
	for _, r := range found {
		names[r.Key[:strings.IndexByte(r.Key, '/')]] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), " ")
}
