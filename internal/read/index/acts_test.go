package index_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/edkey"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// told is what an event of a story says about acts.
type told struct {
	row                  index.Row
	evaluated            bool
	phase, status        string
	intent               id.Event // that a result or a request names
	approval, transition string
	vote, deputyFor      string
	erases               []id.Range
	erased               bool
	members              string           // of the payload of a guarded act or of a result, each with a comma
	receipt              index.Receipt    // of a result, by the keys in force
	by                   string           // the tool that confirms the act
	keys                 []tlog.SignerKey // that a change puts in force; nil if it is none

	run, key string   // of a step
	attempt  int      // of a step
	ends     id.Event // the step whose result a step states
	ended    bool     // a step states the result of this one
}

// story makes up events about acts: intents, results, steps of runs, approvals, erasures and events that are not acts.
type story struct {
	filler *filler
	random *rand.Rand
	events []told
	open   []string // approvals that have not ended
	now    id.Instant
	keeps  bool // nothing is erased, so that what has been read of the newest events stays

	unbound []string         // approvals that no event requested, each for one step
	tools   []tlog.SignerKey // in force
}

func (s *story) next(at id.Index) made {
	r := s.random
	s.now += id.Instant(r.IntN(1000))
	e := told{row: index.Row{Index: at, Event: id.Event(fmt.Sprintf("evt_%08d", at)), ReceivedAt: s.now, Agent: pick(r, []id.Agent{"agt_1", "agt_2"}),
		Tool: pick(r, []id.Tool{"acme.pay", "acme.mail.send"}), Kind: "tool_call", Signer: event.SignerAgent, Trace: id.Trace(fmt.Sprint("trc_", at/7)),
		Declared: id.Allow, Effective: pick(r, []id.Decision{id.Allow, id.Allow, id.Deny, id.AllowWithObligation}), Principal: pick(r, []string{"svc", "svc", "ops"}), Policy: "pol_1", Version: 1, Rule: pick(r, []string{"rule-1", "rule-2", ""})}, evaluated: true}
	switch n := r.IntN(100); {
	case n < 35:
		e.phase = pick(r, []string{"intent", "intent", "intent", "", "result", "other"})
	case n < 45:
		e.row.Signer, e.status = event.SignerBridge, pick(r, []string{"ok", "succeeded", "failed", "error", "unknown", "denied", "started", "started", "started", "queued", "skipped"})
		e.run, e.key, e.attempt = fmt.Sprint("run_", at/200), pick(r, []string{`pay "all" `, "zoë", ".result"})+fmt.Sprint(at%50), 1+int(at/50%4)
		if n := len(s.unbound); n > 0 && r.IntN(2) == 0 {
			e.approval, s.unbound = s.unbound[n-1], s.unbound[:n-1]
		}
	case n < 52:
		s.endStep(&e)
	case n < 68:
		if of := s.pick(func(t *told) bool { return t.evaluated && t.phase != "result" }); of != nil {
			e.evaluated, e.phase, e.intent, e.status = false, "result", of.row.Event, pick(r, []string{"ok", "ok", "ok", "error", "denied", "unknown", "", "strange"})
			s.sign(&e, of)
		}
	case n < 85:
		s.approval(&e)
	case n < 86:
		s.changeKeys(&e)
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

// endStep makes e a step without a tool, which states the result of another one, or seems to.
func (s *story) endStep(e *told) {
	e.row.Signer, e.row.Tool, e.row.Kind, e.evaluated = event.SignerBridge, "", "result", false
	e.run, e.key, e.attempt, e.status = "run_0", "none.result", 1, pick(s.random, []string{"succeeded", "succeeded", "failed", "skipped", "denied", "strange"})
	of := s.pick(func(t *told) bool { return t.key != "" && t.evaluated && !t.ended })
	if of == nil {
		return
	}
	e.run, e.key, e.attempt = of.run, of.key+".result", of.attempt
	switch s.random.IntN(12) {
	case 0:
		e.run += "0"
	case 1:
		e.key, e.attempt = of.key, of.attempt+20
	case 2:
		e.attempt += 10
	case 3:
		e.row.Kind = "tool_call"
	case 4:
		e.row.Signer = event.SignerAgent
	default:
		e.ends, of.ended = of.row.Event, true
	}
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
		e.deputyFor = pick(s.random, []string{"", "", "acc_2", "acc_3"})
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
		if e.deputyFor != "" {
			payload += fmt.Sprintf(`,"deputy_for":"%s"`, e.deputyFor)
		}
	case e.keys != nil:
		texts := []string{}
		for _, k := range e.keys {
			texts = append(texts, fmt.Sprintf("%q", k.Verifier()))
		}
		payload = `{"keys":[` + strings.Join(texts, ",") + "]"
	case e.erases != nil:
		payload = fmt.Sprintf(`{"ranges":[[%d,%d]],"reason":"retention"`, e.erases[0].Begin, e.erases[0].End)
	case e.row.Signer == event.SignerBridge:
		status = fmt.Sprintf(`,"status":"error","step_status":"%s"`, e.status)
	default:
		payload = "{" + e.members + payload[1:]
		if e.phase != "" {
			payload += fmt.Sprintf(`,"phase":"%s"`, e.phase)
		}
		if e.status != "" {
			payload += fmt.Sprintf(`,"status":"%s"`, e.status)
		}
	}
	attempt := ""
	if e.key != "" {
		attempt = fmt.Sprintf(`,"attempt":%d`, e.attempt)
		status = fmt.Sprintf(`,"run_id":"%s","step_key":%q,"step_status":"%s"`, e.run, e.key, e.status)
	}
	envelope := fmt.Appendf(nil, `{"action_kind":"%s","actor_principal":"%s"%s,"payload":%s}%s}`, e.row.Kind, e.row.Principal, attempt, payload, status)
	return made{row: e.row, record: record, envelope: envelope}
}

// toolOf returns the key of a tool with a fixed seed.
func toolOf(name string, seed byte) tlog.SignerKey {
	private, err := edkey.PrivateFromSeed(bytes.Repeat([]byte{seed}, edkey.SeedSize))
	if err != nil {
		panic(err)
	}
	k, err := tlog.NewSignerKey(name, private)
	if err != nil {
		panic(err)
	}
	return k
}

// tools are the keys of which some are in force. Two have one name.
var tools = []tlog.SignerKey{toolOf("did:web:pay.example", 1), toolOf("mail", 2), toolOf("did:web:pay.example", 3)}

// changeKeys makes e a change of the keys of tools, or seems to.
func (s *story) changeKeys(e *told) {
	e.row.Tool, e.row.Kind, e.row.Agent, e.evaluated, e.keys = "", "ledger_tool_keys_changed", "system", false, []tlog.SignerKey{}
	for _, k := range tools {
		if s.random.IntN(3) > 0 {
			e.keys = append(e.keys, k)
		}
	}
	if s.random.IntN(4) == 0 {
		return // an agent seems to change them
	}
	e.row.Signer, s.tools = event.SignerSystem, e.keys
}

// sign puts a receipt into a result, as often a wrong one.
func (s *story) sign(e, of *told) {
	r := s.random
	if r.IntN(3) == 0 {
		return
	}
	key, act := pick(r, tools), of.make()
	at := slices.IndexFunc(s.tools, func(k tlog.SignerKey) bool { return k.Verifier() == key.Verifier() })
	_, payload, _ := strings.Cut(string(act.envelope), `"payload":`)
	if status := strings.Index(payload, `},"status":`); status >= 0 {
		payload = payload[:status+2]
	}
	if run := strings.Index(payload, `,"run_id":`); run >= 0 {
		payload = payload[:run+1]
	}
	action := grant.Action{Organization: ledgertest.Organization(s.filler.tenant), Agent: of.row.Agent, Tool: of.row.Tool, Payload: []byte(payload[:len(payload)-1])}
	receipt := grant.Receipt{Organization: action.Organization, Agent: of.row.Agent, Tool: of.row.Tool, ActionDigest: action.Digest(), Status: 200, At: s.now}
	e.row.Agent, e.row.Tool = of.row.Agent, of.row.Tool
	approval := of.approval
	if r.IntN(8) == 0 {
		approval = "apr_0"
	}
	if e.receipt = index.Unchecked; approval == "" {
		receipt.Intent = of.row.Event
		if of.approval == "" {
			e.receipt, e.by = index.Confirmed, key.Verifier().Name()
		}
	} else {
		receipt.Approval, receipt.Nonce = approval, grant.Nonce{1}
		e.members = fmt.Sprintf(`"approval_id":%q,"grant_nonce":"01%s",`, approval, strings.Repeat("0", 30))
		if of.approval != "" {
			if e.receipt, e.by = index.Confirmed, key.Verifier().Name(); approval != of.approval {
				e.receipt, e.by = index.Wrong, ""
			}
		}
	}
	wrong := true
	switch r.IntN(11) {
	case 0:
		receipt.Status++
		receipt.ActionDigest[0]++
	case 10:
		if wrong = approval == ""; wrong {
			receipt.Intent += "0"
		}
	case 1:
		receipt.Agent = "agt_3"
	case 2:
		receipt.Organization = ledgertest.Organization(red + blue - s.filler.tenant)
	case 3:
		e.members = `"approval_id":"apr_x","grant_nonce":"0",`
	default:
		wrong = false
	}
	note, err := grant.SignReceipt(receipt, key)
	if err != nil {
		panic(err)
	}
	if wrong {
		e.receipt, e.by = index.Wrong, ""
	}
	if r.IntN(20) == 0 {
		note, e.receipt, e.by, at = bytes.Replace(note, []byte("\n\n"), []byte("\n"), 1), index.Wrong, "", 0
	}
	if at < 0 || len(s.tools) == 0 {
		e.receipt, e.by = index.Unchecked, ""
	}
	e.members += fmt.Sprintf(`"receipt":%s,`, strings.ReplaceAll(fmt.Sprintf("%q", note), `\u2014`, "—"))
}

// asked is the approval of an act.
type asked struct {
	state string // after its latest transition; "" if none
	wait  int64  // until the decision; 0 if none
}

// acts returns the acts of a story and their approvals, computed by a scan of the whole story for each.
func (s *story) acts() (acts []index.Row, approvals []asked) {
	results, ends, transitions := map[id.Event]*told{}, map[id.Event]*told{}, map[string][]*told{}
	for i := range s.events {
		e := &s.events[i]
		if e.phase == "result" && !e.evaluated && results[e.intent] == nil {
			results[e.intent] = e
		}
		if e.ends != "" && !e.erased {
			ends[e.ends] = e
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
			words := map[string]string{"ok": "ok", "succeeded": "ok", "failed": "error", "error": "error", "unknown": "unknown", "denied": "denied",
				"skipped": "skipped", "strange": "unknown"}
			status = words[e.status]
			if r := ends[e.row.Event]; r != nil && status == "" {
				found.Result, status = r.row.Index, words[r.status]
			}
		}
		if r := results[e.row.Event]; r != nil {
			found.Result = r.row.Index
			if status = r.status; status == "" {
				status = "ok"
			}
			if r.erased || status == "strange" {
				status = "unknown"
			}
			if found.Receipt, found.ConfirmedBy = r.receipt, r.by; r.erased {
				found.Receipt, found.ConfirmedBy = index.NoReceipt, ""
			} else if e.erased && r.receipt != index.NoReceipt {
				found.Receipt, found.ConfirmedBy = index.Unchecked, ""
			}
		}
		state := ""
		for _, t := range transitions[e.approval] {
			found.Approval = e.approval
			if state = t.transition; t.vote != "" || t.transition == "revoked" {
				if account, _, session := cutSession(t.row.Principal); session {
					found.Votes = append(found.Votes, index.Vote{Account: account, DeputyFor: t.deputyFor, Approve: t.vote == "approve"})
				} else {
					found.Votes = append(found.Votes, index.Vote{Account: t.row.Principal, DeputyFor: t.deputyFor, Approve: t.vote == "approve"})
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
			index.Cancelled: state == "cancelled" || state == "invalidated" || status == "skipped",
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
		acts, approvals = append(acts, row), append(approvals, asked{state, waited(transitions[e.approval])})
	}
	return acts, approvals
}

// waited returns the time from the first transition to the first of the last ones that are all decisions.
func waited(transitions []*told) (wait int64) {
	for _, t := range slices.Backward(transitions) {
		if !slices.Contains([]string{"approved", "consumed", "denied", "revoked"}, t.transition) {
			break
		}
		wait = max(1, int64(t.row.ReceivedAt-transitions[0].row.ReceivedAt))
	}
	return wait
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
	want, approvals := s.acts()
	defer w.checkCounts(tenant, s, want, approvals)
	for i := range want {
		e := &s.events[want[i].Index]
		want[i].Hash = w.rows[tenant][want[i].Index].Hash
		if e.erased {
			want[i].Principal = ""
		}
	}
	for _, limit := range []int{7, 1000} {
		for _, f := range []index.Filter{{Acts: true}, {Outcome: index.Refused}, {Outcome: index.Unknown, Tool: "acme.pay"}, {Approver: "acc_2"}, {Outcome: index.Waiting},
			{Receipts: index.OnlyConfirmed}, {Receipts: index.NotConfirmed, Outcome: index.Done}} {
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
				confirmed := r.Act.Receipt == index.Confirmed
				if (f.Receipts == index.AnyReceipt || confirmed == (f.Receipts == index.OnlyConfirmed)) && (f.Outcome == index.NoOutcome || r.Act.Outcome == f.Outcome) && (f.Tool == "" || string(r.Tool) == f.Tool) &&
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
			if stories[f.tenant], f.make = s, s.next; f.tenant == blue {
				s.tools = tools[1:2] // blue's log has them of its predecessor
			}
		})
		ledgers := &reopenable{w.Ledgers}
		inherited := func(_ context.Context, s *log.State) (keys []string, err error) {
			if s.Identity().Tenant == blue {
				keys = []string{tools[1].Verifier().String()}
			}
			return keys, nil
		}
		w.index = index.New(index.Options{Ledgers: ledgers, Store: w.engine, Clock: w.Clock, InheritedToolKeys: inherited})
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
		for tenant, s := range stories {
			met := map[index.Receipt]int{}
			acts, _ := s.acts()
			for i := range acts {
				met[acts[i].Act.Receipt]++
			}
			if len(met) != 4 {
				t.Errorf("tenant %d: acts by receipt %v", tenant, met)
			}
		}
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
				Kind: "tool_call", Signer: event.SignerAgent, Trace: "trc", Declared: id.Allow, Effective: id.Allow, Principal: "svc", Policy: "pol_1", Version: 1, Rule: "r"}, evaluated: true}
			if at == rare {
				e.row.Effective = id.Deny
			}
			s.events = append(s.events, e)
			return e.make()
		}
	})
	w.follow()
	w.index.CompareAtMost(2)
	for _, c := range []struct {
		text      string
		ascending bool
	}{{"", false}, {"", true}, {"evt_", false}, {"evt_", true}} {
		ascending := c.ascending
		q := index.Query{Filter: index.Filter{Outcome: index.Denied}, Text: c.text, Limit: 10, Ascending: ascending, Longest: time.Hour}
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
			if c.text != "" && page.Next != nil && (page.LookedTo != *page.Next || page.LookedToAt != 1_790_000_000_000) {
				t.Errorf("ascending %v: looked to %d at %d, want %d", ascending, page.LookedTo, page.LookedToAt, *page.Next)
			}
			q.After, more = page.Next, page.Next != nil
		}
		if pages != 3 || !slices.Equal(found, []id.Index{rare}) {
			t.Errorf("ascending %v: got %v on %d pages, want %d on 3", ascending, found, pages, rare)
		}
	}
}

// A step without a tool ends the act of its step while both envelopes are there.
func TestResultsOfStepsEndWithErasures(t *testing.T) {
	step := func(tool id.Tool, kind, key, status string) told {
		return told{row: index.Row{ReceivedAt: 1_790_000_000_000, Agent: "agt_1", Tool: tool, Kind: kind, Signer: event.SignerBridge, Trace: "trc", Declared: id.Allow,
			Effective: id.Allow, Principal: "svc", Policy: "pol_1", Version: 1, Rule: "r"}, evaluated: tool != "", run: "run_1", key: key, attempt: 1, status: status}
	}
	erasure := func(at id.Index) told {
		return told{row: index.Row{ReceivedAt: 1_790_000_000_000, Agent: "system", Kind: event.KindErasure, Signer: event.SignerSystem, Trace: "trc", Declared: id.Allow,
			Effective: id.Allow, Principal: "svc"}, erases: []id.Range{{Begin: at, End: at + 1}}}
	}
	act, result := step("acme.pay", "tool_call", "pay", "started"), step("", "result", "pay.result", "succeeded")
	type want struct {
		outcome index.Outcome
		result  id.Index
	}
	for name, tt := range map[string]struct {
		events []told
		want   []want // after each
	}{
		"result":          {[]told{act, result}, []want{{index.Open, 0}, {index.Done, 2}}},
		"result erased":   {[]told{act, result, erasure(2)}, []want{{index.Open, 0}, {index.Done, 2}, {index.Open, 0}}},
		"act erased":      {[]told{act, result, erasure(1)}, []want{{index.Open, 0}, {index.Done, 2}, {index.Unknown, 0}}},
		"act erased soon": {[]told{act, erasure(1), result}, []want{{index.Open, 0}, {index.Unknown, 0}, {index.Unknown, 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, enginetest.Pebble(t), 1)
			ledgers := &reopenable{w.Ledgers}
			w.index = index.New(index.Options{Ledgers: ledgers, Store: w.engine, Clock: w.Clock})
			for n := range tt.events {
				x, f := w.index, newFillerBehind(w, red)
				f.make = func(at id.Index) made {
					e := tt.events[n]
					e.row.Index, e.row.Event = at, id.Event(fmt.Sprintf("evt_%08d", at))
					m := e.make()
					m.erases = e.erases
					return m
				}
				f.append(1)
				w.reopen()
				for _, in := range []*index.Index{x, w.index} { // one that has joined the events one by one, and one that joins them at once
					w.index, ledgers.Ledgers = in, w.Ledgers
					page, err := in.List(t.Context(), red, index.Query{Filter: index.Filter{Acts: true}, Limit: 10})
					if err != nil || len(page.Rows) != 1 {
						t.Fatalf("event %d: got %d acts, %v", n, len(page.Rows), err)
					}
					if a := page.Rows[0].Act; (want{a.Outcome, a.Result}) != tt.want[n] {
						t.Errorf("event %d: got %+v, want %+v", n, *a, tt.want[n])
					}
				}
				w.index = x
			}
		})
	}
}
