package index_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/storage"
)

// told is what an event of a story says about acts.
type told struct {
	row                  index.Row
	evaluated            bool
	phase, status        string
	intent               id.Event // that a result or a request names
	approval, transition string
	vote                 string
	erases               []id.Range
	erased               bool
}

// story makes up events about acts: intents, results, steps of runs, approvals, erasures and events that are not acts.
type story struct {
	filler *filler
	random *rand.Rand
	events []told
	open   []string // approvals that have not ended
	now    id.Instant
	keeps  bool // nothing is erased, so that what has been read of the newest events stays

	unbound []string // approvals that no event requested, each for one step
}

func (s *story) next(at id.Index) made {
	r := s.random
	s.now += id.Instant(r.IntN(1000))
	e := told{row: index.Row{Index: at, Event: id.Event(fmt.Sprintf("evt_%08d", at)), ReceivedAt: s.now, Agent: pick(r, []id.Agent{"agt_1", "agt_2"}),
		Tool: pick(r, []id.Tool{"acme.pay", "acme.mail.send"}), Kind: "tool_call", Signer: event.SignerAgent, Trace: id.Trace(fmt.Sprint("trc_", at/7)),
		Declared: id.Allow, Effective: pick(r, []id.Decision{id.Allow, id.Allow, id.Deny, id.AllowWithObligation}), Principal: "svc", Policy: "pol_1", Rule: "rule-1"}, evaluated: true}
	switch n := r.IntN(100); {
	case n < 35:
		e.phase = pick(r, []string{"intent", "intent", "intent", "", "result", "other"})
	case n < 45:
		e.row.Signer, e.status = event.SignerBridge, pick(r, []string{"ok", "succeeded", "failed", "error", "unknown", "denied", "started", "skipped"})
		if n := len(s.unbound); n > 0 && r.IntN(2) == 0 {
			e.approval, s.unbound = s.unbound[n-1], s.unbound[:n-1]
		}
	case n < 65:
		if of := s.pick(func(t *told) bool { return t.evaluated && t.phase != "result" }); of != nil {
			e.evaluated, e.phase, e.intent, e.status = false, "result", of.row.Event, pick(r, []string{"ok", "ok", "ok", "error", "denied", "unknown", "", "strange"})
		}
	case n < 85:
		s.approval(&e)
	case n < 97:
		e.row.Tool, e.row.Kind, e.evaluated = "", "llm_invocation", false
	default:
		s.erasure(&e, at)
	}
	s.events = append(s.events, e)
	m := e.make()
	for _, of := range e.erases {
		for i := of.Begin; i < of.End; i++ {
			if s.events[i].row.Signer != event.SignerSystem {
				m.erases = append(m.erases, id.Range{Begin: i, End: i + 1})
			}
		}
	}
	return m
}

// pick returns a recent event that satisfies a condition, or sometimes an old one, or nil.
func (s *story) pick(of func(*told) bool) *told {
	for range 20 {
		if len(s.events) == 0 {
			return nil
		}
		at := len(s.events) - 1 - s.random.IntN(min(len(s.events), pick(s.random, []int{20, 500, 1 << 30})))
		if e := &s.events[at]; of(e) {
			return e
		}
	}
	return nil
}

func (s *story) approval(e *told) {
	e.row.Signer, e.row.Tool, e.row.Kind, e.row.Agent, e.evaluated = event.SignerSystem, "", "ledger_approval", "system", false
	e.row.Principal = pick(s.random, []string{"acc_1/session", "acc_2/session", "operator"})
	if len(s.open) < 3 || s.random.IntN(4) == 0 {
		e.approval, e.transition = fmt.Sprint("apr_", e.row.Index), "requested"
		if of := s.pick(func(t *told) bool {
			return t.evaluated && t.phase != "result" && t.row.Signer == event.SignerAgent && t.approval == ""
		}); of != nil && s.random.IntN(4) > 0 {
			of.approval, e.intent = e.approval, of.row.Event
		} else {
			s.unbound = append(s.unbound, e.approval)
		}
		s.open = append(s.open, e.approval)
		return
	}
	n := s.random.IntN(len(s.open))
	e.approval = s.open[n]
	e.transition = pick(s.random, []string{"voted", "voted", "pending", "approved", "consumed", "denied", "revoked", "expired", "cancelled", "invalidated"})
	if e.transition == "voted" {
		e.vote = pick(s.random, []string{"approve", "deny"})
	}
	if slices.Contains([]string{"consumed", "denied", "revoked", "expired", "cancelled", "invalidated"}, e.transition) {
		s.open = slices.Delete(s.open, n, n+1)
	}
}

func (s *story) erasure(e *told, at id.Index) {
	e.row.Signer, e.row.Tool, e.row.Kind, e.row.Agent, e.evaluated = event.SignerSystem, "", event.KindErasure, "system", false
	begin := id.Index(s.random.IntN(max(1, int(at))))
	if s.keeps {
		begin = at
	}
	end := min(s.filler.stored, begin+id.Index(1+s.random.IntN(40)))
	if begin >= end {
		e.row.Kind = "ledger_settings_changed"
		return
	}
	e.erases = []id.Range{{Begin: begin, End: end}}
	for i := begin; i < end; i++ {
		if s.events[i].row.Signer != event.SignerSystem {
			s.events[i].erased = true
		}
	}
}

// make returns the event as a ledger has it.
func (e *told) make() made {
	approval, intent := orNull(""), ""
	if e.row.Signer == event.SignerBridge && e.approval != "" {
		approval = orNull(e.approval)
	}
	if e.phase == "result" && !e.evaluated {
		intent = fmt.Sprintf(`,"intent":"%s"`, e.intent)
	}
	record := fmt.Appendf(nil, `{"event_id":"%s","policy":{"approval_id":%s,"declared":"%s","effective":"%s","evaluated":%v,"evaluated_at":null%s,"limits":null,"policy_digest":null,"policy_id":"pol_1","policy_version":1,"rule_id":%s},"signer":"%s"}`,
		e.row.Event, approval, e.row.Declared, e.row.Effective, e.evaluated, intent, orNull(e.row.Rule), e.row.Signer)
	payload, status := `{"arguments":{"phase":"intent","status":"error","step_status":"error"},"note":"\",\"phase\":\"result\""`, ""
	switch {
	case e.transition != "":
		payload = fmt.Sprintf(`{"approval_id":"%s"`, e.approval)
		if e.intent != "" {
			payload += fmt.Sprintf(`,"intent_event_id":"%s"`, e.intent)
		}
		payload += fmt.Sprintf(`,"transition":"%s"`, e.transition)
		if e.vote != "" {
			payload += fmt.Sprintf(`,"vote":"%s"`, e.vote)
		}
	case e.erases != nil:
		payload = fmt.Sprintf(`{"ranges":[[%d,%d]],"reason":"retention"`, e.erases[0].Begin, e.erases[0].End)
	case e.row.Signer == event.SignerBridge:
		status = fmt.Sprintf(`,"status":"error","step_status":"%s"`, e.status)
	default:
		if e.phase != "" {
			payload += fmt.Sprintf(`,"phase":"%s"`, e.phase)
		}
		if e.status != "" {
			payload += fmt.Sprintf(`,"status":"%s"`, e.status)
		}
	}
	envelope := fmt.Appendf(nil, `{"action_kind":"%s","actor_principal":"%s","payload":%s}%s}`, e.row.Kind, e.row.Principal, payload, status)
	return made{row: e.row, record: record, envelope: envelope}
}

// acts returns the acts of a story, computed by a scan of the whole story for each.
func (s *story) acts() (acts []index.Row) {
	results, transitions := map[id.Event]*told{}, map[string][]*told{}
	for i := range s.events {
		e := &s.events[i]
		if e.phase == "result" && !e.evaluated && results[e.intent] == nil {
			results[e.intent] = e
		}
		if e.transition != "" {
			transitions[e.approval] = append(transitions[e.approval], e)
		}
	}
	for i := range s.events {
		e := &s.events[i]
		if !e.evaluated || e.row.Tool == "" || e.phase == "result" && !e.erased {
			continue
		}
		found := index.Act{}
		status := ""
		if e.row.Signer == event.SignerBridge && !e.erased {
			status = map[string]string{"ok": "ok", "succeeded": "ok", "failed": "error", "error": "error", "unknown": "unknown", "denied": "denied"}[e.status]
		}
		if r := results[e.row.Event]; r != nil {
			found.Result = r.row.Index
			if status = r.status; status == "" {
				status = "ok"
			}
			if r.erased || status == "strange" {
				status = "unknown"
			}
		}
		state := ""
		for _, t := range transitions[e.approval] {
			found.Approval = e.approval
			if state = t.transition; t.vote != "" || t.transition == "revoked" {
				if account, _, session := cutSession(t.row.Principal); session {
					found.Votes = append(found.Votes, index.Vote{Account: account, Approve: t.vote == "approve"})
				} else {
					found.Votes = append(found.Votes, index.Vote{Account: t.row.Principal, Approve: t.vote == "approve"})
				}
			}
		}
		pending := state == "requested" || state == "voted" || state == "pending"
		approved := state == "approved" || state == "consumed"
		holds := map[index.Outcome]bool{
			index.Done: status == "ok" || status == "" && !e.erased && e.phase != "intent" && e.status != "started" && !pending && e.row.Effective != id.Deny &&
				(e.row.Effective == id.Allow || approved),
			index.Failed:    status == "error",
			index.Refused:   state == "denied" || state == "revoked",
			index.Denied:    e.row.Effective == id.Deny || status == "denied" && state != "expired" && state != "cancelled" && state != "invalidated",
			index.Expired:   state == "expired",
			index.Cancelled: state == "cancelled" || state == "invalidated",
			index.Unknown:   status == "unknown" || status == "" && e.erased && !pending,
			index.Waiting:   pending,
			index.Open:      true,
		}
		if status == "" && holds[index.Done] { // by the event itself, unless people stopped it
			holds[index.Done] = state == "" || approved
		}
		for o := index.Done; o <= index.Open; o++ {
			if holds[o] {
				found.Outcome = o
				break
			}
		}
		row := e.row
		row.Act = &found
		acts = append(acts, row)
	}
	return acts
}

func cutSession(principal string) (account, rest string, session bool) {
	for i := range principal {
		if principal[i] == '/' {
			return principal[:i], principal[i+1:], true
		}
	}
	return principal, "", false
}

// checkActs compares lists of acts, in both orders and at several page sizes, with a naive computation.
func (w *world) checkActs(tenant id.Tenant, s *story) {
	w.t.Helper()
	want := s.acts()
	for i := range want {
		e := &s.events[want[i].Index]
		want[i].Hash = w.rows[tenant][want[i].Index].Hash
		if e.erased {
			want[i].Principal = ""
		}
	}
	for _, limit := range []int{7, 1000} {
		for _, f := range []index.Filter{{Acts: true}, {Outcome: index.Refused}, {Outcome: index.Unknown, Tool: "acme.pay"}, {Approver: "acc_2"}, {Outcome: index.Waiting}} {
			ascending := limit == 7
			var got []index.Row
			for q := (index.Query{Filter: f, Limit: limit, Ascending: ascending}); ; {
				page, err := w.index.List(w.t.Context(), tenant, q)
				if err != nil {
					w.t.Fatal(err)
				}
				got = append(got, page.Rows...)
				if q.After = page.Next; page.Next == nil || len(got) > 20*limit {
					break
				}
			}
			var left []index.Row
			for i := range want {
				r := want[i]
				if !ascending {
					r = want[len(want)-1-i]
				}
				if (f.Outcome == index.NoOutcome || r.Act.Outcome == f.Outcome) && (f.Tool == "" || string(r.Tool) == f.Tool) &&
					(f.Approver == "" || slices.ContainsFunc(r.Act.Votes, func(v index.Vote) bool { return v.Account == f.Approver })) {
					left = append(left, r)
				}
			}
			if len(got) > 20*limit { // not read to the end
				left = left[:min(len(left), len(got))]
			}
			for i := range got {
				got[i].ErasedBy = 0
			}
			if len(got) != len(left) && len(got) <= 20*limit {
				w.t.Errorf("%+v by %d: got %d acts, want %d", f, limit, len(got), len(left))
			}
			for i := range left {
				want, act := left[i], *got[i].Act
				if got[i].Act = want.Act; got[i] != want || fmt.Sprint(act) != fmt.Sprint(*want.Act) {
					w.t.Fatalf("%+v by %d: got %+v %+v, want %+v %+v of %+v", f, limit, got[i], act, want, *want.Act, s.events[want.Index])
				}
			}
		}
	}
}

// reopenable are the ledgers of a world, also after it was reopened.
type reopenable struct{ index.Ledgers }

// Acts have the outcome that a naive computation finds while events arrive and are erased, before and after they are
// indexed, and after a rebuild.
func TestActs(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		stories := map[id.Tenant]*story{}
		w := newWorld(t, open(t), 1000, func(f *filler) {
			s := &story{filler: f, random: rand.New(rand.NewPCG(7, uint64(f.tenant))), now: 1_790_000_000_000}
			stories[f.tenant], f.make = s, s.next
		})
		ledgers := &reopenable{w.Ledgers}
		w.index = index.New(index.Options{Ledgers: ledgers, Store: w.engine, Clock: w.Clock})
		check := func() {
			for tenant, s := range stories {
				w.checkActs(tenant, s)
			}
		}
		check()
		for n := range 5 {
			x, rows := w.index, w.rows
			for tenant := range stories {
				f := newFillerBehind(w, tenant)
				stories[tenant].keeps = n%2 == 0
				f.append(3500 + 700*int(tenant-red))
				rows[tenant] = append(rows[tenant], f.rows...)
			}
			w.reopen()
			w.index, ledgers.Ledgers = x, w.Ledgers
			if n%3 == 0 {
				check() // the tail is longer than a chunk at times
			}
			w.follow()
			check()
		}
		if err := w.index.Rebuild(t.Context(), red); err != nil {
			t.Fatal(err)
		}
		w.follow()
		check()
	})
}

// A page compares a bounded number of records, and the next one continues after them.
func TestActsAreBounded(t *testing.T) {
	const chunks = 5
	rare := id.Index(3*index.ChunkEvents + 17)
	s := &story{random: rand.New(rand.NewPCG(3, 4))}
	w := newWorld(t, enginetest.Pebble(t), chunks*index.ChunkEvents+50, func(f *filler) {
		f.make = func(at id.Index) made {
			e := told{row: index.Row{Index: at, Event: id.Event(fmt.Sprintf("evt_%08d", at)), ReceivedAt: 1_790_000_000_000, Agent: "agt_1", Tool: "acme.pay",
				Kind: "tool_call", Signer: event.SignerAgent, Trace: "trc", Declared: id.Allow, Effective: id.Allow, Principal: "svc", Policy: "pol_1", Rule: "r"}, evaluated: true}
			if at == rare {
				e.row.Effective = id.Deny
			}
			s.events = append(s.events, e)
			return e.make()
		}
	})
	w.follow()
	w.index.CompareAtMost(2)
	for _, ascending := range []bool{false, true} {
		q := index.Query{Filter: index.Filter{Outcome: index.Denied}, Limit: 10, Ascending: ascending}
		var found []id.Index
		pages := 0
		for more := true; more; pages++ {
			page, err := w.index.List(t.Context(), red, q)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page.Rows {
				found = append(found, r.Index)
			}
			q.After, more = page.Next, page.Next != nil
		}
		if pages != 3 || !slices.Equal(found, []id.Index{rare}) {
			t.Errorf("ascending %v: got %v on %d pages, want %d on 3", ascending, found, pages, rare)
		}
	}
}
