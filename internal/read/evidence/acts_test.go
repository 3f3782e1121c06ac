package evidence_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/verify/pack"
)

// tale makes up events about acts in a ledger, as the service would store them.
type tale struct {
	*world
	t         testing.TB
	random    *rand.Rand
	acts      []id.Event
	approvals []string // that have not ended
	n         int
}

func oneOf[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// append appends an event of an agent, or of a tool without a key.
func (s *tale) append(signer event.Signer, members map[string]any, p event.Policy) id.Event {
	s.t.Helper()
	s.n++
	name := id.Event(fmt.Sprintf("evt-%d", s.n))
	e := map[string]any{"schema_version": 1, "event_id": name, "organization_id": ledgertest.Organization(red).String(),
		"trace_id": fmt.Sprint("trc-", s.n/9), "agent_id": oneOf(s.random, "agt_1", "agt_2"), "key_id": "key", "emitted_at": "2026-11-20T12:00:00.000Z",
		"actor_type": "agent", "actor_principal": "svc", "action_kind": "tool_call", "policy_decision": "allow"}
	for name, value := range members {
		if e[name] = value; value == nil {
			delete(e, name)
		}
	}
	unsigned, err := jcs.Marshal(e)
	if err != nil {
		s.t.Fatal(err)
	}
	signed, err := event.SignEnvelope(unsigned, s.key)
	if err != nil {
		s.t.Fatal(err)
	}
	p.Declared = id.Allow
	_, err = s.Ledgers.Append(s.t.Context(), red, func(_ context.Context, l *log.State) (log.Submission, error) {
		return log.Submission{Drafts: []log.Draft{log.NewDraft(l.Identity(), signed, log.Attestation{Form: event.FormDigest,
			PublicKey: did.Multikey(s.key.Public().Bytes()), Signer: signer, Custody: event.CustodyAgent, IngestKeyID: "ik", Policy: p,
			Disclosure: id.DiscloseRecord})}}, nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return name
}

func (s *tale) judged(effective id.Decision) event.Policy {
	return event.Policy{Evaluated: true, Effective: effective, PolicyID: "pol", PolicyVersion: 1, PolicyDigest: s.policy.Digest(),
		RuleID: "default", Engine: "rules", InputDigest: id.Hash{1}, EvaluatedAt: 1}
}

func (s *tale) decide(approval, transition, principal string, more map[string]any) {
	s.t.Helper()
	payload := map[string]any{"approval_id": approval, "transition": transition}
	for name, value := range more {
		payload[name] = value
	}
	_, err := s.SystemEvents.Append(s.t.Context(), red, principal, func(context.Context, *log.State) (sysevent.Change, error) {
		return sysevent.Change{Statements: []sysevent.Statement{{Kind: sysevent.Approval, Payload: payload}}}, nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *tale) next() {
	r := s.random
	tool := oneOf(r, "acme.pay", "acme.mail.send")
	payload := func(phase string) map[string]any {
		p := map[string]any{"amount_usd": r.IntN(1000), "status": oneOf(r, "ok", "error", "x")}
		if phase != "" {
			p["phase"] = phase
		}
		return p
	}
	switch n := r.IntN(100); {
	case n < 35:
		effective := oneOf(r, id.Allow, id.Allow, id.Deny, id.AllowWithObligation)
		s.acts = append(s.acts, s.append(event.SignerAgent, map[string]any{"tool_name": tool, "payload": payload(oneOf(r, "intent", "intent", "", "result"))}, s.judged(effective)))
		if of := s.acts[len(s.acts)-1]; effective == id.AllowWithObligation && r.IntN(4) > 0 {
			name := fmt.Sprint("apr-", s.n)
			s.decide(name, "requested", "ik_1", map[string]any{"intent_event_id": of})
			s.approvals = append(s.approvals, name)
		}
	case n < 60 && len(s.acts) > 0:
		of := s.acts[max(0, len(s.acts)-1-r.IntN(6))]
		p := map[string]any{"phase": "result"}
		if status := oneOf(r, "", "ok", "ok", "error", "denied", "unknown", `a "b"`); status != "" {
			p["status"] = status
		}
		judged := s.judged(id.Allow)
		s.append(event.SignerAgent, map[string]any{"tool_name": tool, "payload": p, "parent_event_id": of}, judged.ForResult(of, id.Allow))
	case n < 66 && len(s.approvals) > 0:
		at := r.IntN(len(s.approvals))
		name, who := s.approvals[at], oneOf(r, "acc_1/session", "acc_2")
		transition := oneOf(r, "voted", "voted", "approved", "denied", "revoked", "expired", "cancelled", "invalidated", "consumed")
		more := map[string]any{"voted": map[string]any{"vote": "approve"}, "approved": map[string]any{"vote": "approve"}, "denied": map[string]any{"vote": "deny"}}
		votes, _ := more[transition].(map[string]any)
		s.decide(name, transition, who, votes)
		if transition != "voted" && transition != "approved" {
			s.approvals = append(s.approvals[:at], s.approvals[at+1:]...)
		}
	case n < 83:
		s.append(event.SignerBridge, map[string]any{"tool_name": tool, "payload": payload(""), "run_id": "run_1", "step_key": fmt.Sprint("k", s.n), "attempt": 1,
			"step_status": oneOf(r, "started", "started", "succeeded", "failed", "skipped", "queued")}, s.judged(id.Allow))
	case n < 90:
		s.append(event.SignerBridge, map[string]any{"payload": map[string]any{}, "action_kind": "result", "run_id": "run_1",
			"step_key": fmt.Sprint("k", s.n-r.IntN(9), ".result"), "attempt": 1, "step_status": oneOf(r, "succeeded", "failed", "skipped", "?")}, event.Policy{Effective: id.Allow})
	case n < 94:
		s.append(event.SignerAgent, map[string]any{"payload": map[string]any{"text": "no tool"}}, event.Policy{Effective: id.Allow})
	default:
		size := s.State(s.t, red).Size()
		if size < 12 {
			return
		}
		begin := size - 1 - id.Index(r.IntN(10))
		s.erase(s.t, red, id.Range{Begin: begin, End: begin + 1})
	}
}

// actLine is the part of a line of acts.ndjson that the index has too.
type actLine struct {
	Index    id.Index  `json:"log_index"`
	Outcome  string    `json:"outcome"`
	Approval string    `json:"approval_id"`
	Result   *id.Index `json:"result_log_index"`
	Votes    []struct {
		Account string `json:"account_id"`
		Vote    string `json:"vote"`
	} `json:"votes"`
}

// The acts of a pack of a whole ledger are those of the index, for all outcomes and after erasures. Packs of parts of it, of an agent, of a
// tool and without envelopes verify.
func TestActsAgainstTheIndex(t *testing.T) {
	onEngines(t, func(t *testing.T, w *world) {
		s := &tale{world: w, t: t, random: rand.New(rand.NewPCG(38, 6))}
		w.fill(t, blue, 3)
		outcomes := make(map[string]int)
		for round := range 2 {
			for range 150 {
				s.next()
			}
			size := w.State(t, red).Size()
			text := w.export(t, red, fmt.Sprintf("envelopes=1&to=%d", size))
			r := w.check(t, red, text)
			want := s.indexed(size)
			got := make(map[id.Index]string)
			for line := range strings.Lines(filesOf(t, text)[pack.FileActs]) {
				var l actLine
				if err := json.Unmarshal([]byte(line), &l); err != nil {
					t.Fatal(err)
				}
				outcomes[l.Outcome]++
				described := fmt.Sprint(l.Outcome, " ", l.Approval)
				for _, v := range l.Votes {
					described += fmt.Sprint(" ", v.Account, v.Vote == "approve")
				}
				if l.Result != nil {
					described += fmt.Sprint(" result ", *l.Result)
				}
				got[l.Index] = described
			}
			for at, want := range want {
				if got[at] != want {
					t.Errorf("round %d, act %d: got %q, want %q", round, at, got[at], want)
				}
			}
			if len(got) != len(want) || r.Acts.Count != uint64(len(want)) {
				t.Errorf("got %d acts, want %d", len(got), len(want))
			}
			for range 12 {
				begin := id.Index(s.random.IntN(int(size)))
				end := begin + id.Index(s.random.IntN(int(size-begin)+1))
				query := fmt.Sprintf("from=%d&to=%d%s%s", begin, end, oneOf(s.random, "", "&envelopes=1"), oneOf(s.random, "", "&agent_id=agt_1", "&tool=acme.pay"))
				if part := w.check(t, red, w.export(t, red, query)); part.Acts == nil {
					t.Errorf("%s: no acts", query)
				}
			}
		}
		if len(outcomes) != 9 {
			t.Errorf("got the outcomes %v, want all nine", outcomes)
		}
	})
}

// indexed returns the acts of the index before end.
func (s *tale) indexed(end id.Index) map[id.Index]string {
	s.t.Helper()
	found := make(map[id.Index]string)
	q := index.Query{Limit: 100, Ascending: true, Filter: index.Filter{Acts: true, To: index.Bound{Given: true, Index: end}}}
	for {
		page, err := s.exporter.Index.List(s.t.Context(), red, q)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, row := range page.Rows {
			described := fmt.Sprint(row.Act.Outcome, " ", row.Act.Approval)
			for _, v := range row.Act.Votes {
				described += fmt.Sprint(" ", v.Account, v.Approve)
			}
			if row.Act.Result != 0 {
				described += fmt.Sprint(" result ", row.Act.Result)
			}
			found[row.Index] = described
		}
		if q.After = page.Next; page.Next == nil {
			return found
		}
	}
}

// A pack shows what its own organization did, and the bytes are the same for the same head.
func TestActsAreOfOneOrganization(t *testing.T) {
	w := newWorld(t)
	w.fill(t, red, 6)
	w.fill(t, blue, 4)
	w.exporter.Events = nothing{}
	for tenant, want := range map[id.Tenant]uint64{red: 5, blue: 3} {
		text := w.export(t, tenant, "envelopes=1")
		if r := w.check(t, tenant, text); r.Acts.Count != want || r.Acts.Outcomes["done"] != want {
			t.Errorf("%v: got %+v, want %d", tenant, r.Acts, want)
		}
		if again := w.export(t, tenant, "envelopes=1"); !bytes.Equal([]byte(again), []byte(text)) {
			t.Errorf("%v: two packs differ", tenant)
		}
	}
}

// An act that a person approved before the range is not among those that the pack proves to be approved by people.
func TestApprovalOutsideThePack(t *testing.T) {
	s := &tale{world: newWorld(t), t: t, random: rand.New(rand.NewPCG(1, 1))}
	approved := s.judged(id.AllowWithObligation)
	for _, name := range []string{"apr-1", "apr-2"} {
		s.decide(name, "requested", "ik_1", nil)
		s.decide(name, "approved", "acc_1", map[string]any{"vote": "approve"})
	}
	begin := s.State(t, red).Size()
	approved.ApprovalID = "apr-1"
	s.append(event.SignerAgent, map[string]any{"tool_name": "acme.pay", "payload": map[string]any{}}, approved)
	s.decide("apr-2", "consumed", "ik_1", nil)
	approved.ApprovalID = "apr-2"
	s.append(event.SignerAgent, map[string]any{"tool_name": "acme.pay", "payload": map[string]any{}}, approved)
	const (
		proved  = "2 of the acts that are done had been approved by votes in the log"
		outside = "2 of the acts that are done had an approval whose votes lie outside the pack"
		row     = `<span class="quiet">an approval outside the pack</span>`
	)
	for from, inside := range map[id.Index]bool{0: true, begin: false} {
		text := s.export(t, red, fmt.Sprintf("envelopes=1&from=%d", from))
		r, page := s.check(t, red, text), file(t, text, pack.FileReport)
		want := uint64(0)
		if inside {
			want = 2
		}
		if r.Acts.Outcomes["done"] != 2 || r.Acts.ApprovedDone != want || strings.Contains(strings.Join(r.ActLines(), ""), "approved and done") != inside {
			t.Errorf("from %d: got %q", from, r.ActLines())
		}
		if strings.Contains(page, proved) != inside || strings.Contains(page, outside) == inside || strings.Count(page, row) != 2-int(want) {
			t.Errorf("from %d: the report has %q: %v, %q: %v, and %d rows with %q", from, proved, strings.Contains(page, proved), outside,
				strings.Contains(page, outside), strings.Count(page, row), row)
		}
		if strings.Contains(page, "logged then") || strings.Contains(page, "vote then") {
			t.Errorf("from %d: the report says that times are proved", from)
		}
	}
}
