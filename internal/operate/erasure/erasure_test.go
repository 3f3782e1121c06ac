package erasure_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
)

// some returns events of two agents, two traces and two principals.
func some() []sent {
	return []sent{
		{"e0", "agt_a", "trc_1", "mia@red", "acme.read", "canary zero"},
		{"e1", "agt_a", "trc_2", "joe", "", "canary one"},
		{"e2", "agt_b", "trc_1", "joe", "acme.read", "canary two"},
		{"e3", "agt_b", "trc_2", "mia@red", "acme.refund", "canary three"},
	}
}

func TestErase(t *testing.T) {
	for name, tt := range map[string]struct {
		wanted erasure.Wanted
		event  string
		left   string
		counts string
	}{
		"agent":     {wanted: erasure.Wanted{Agent: "agt_a"}, left: "[e2 e3]", counts: "2 2 0 0"},
		"trace":     {wanted: erasure.Wanted{Trace: "trc_1"}, left: "[e1 e3]", counts: "2 2 0 0"},
		"principal": {wanted: erasure.Wanted{Principal: "joe"}, left: "[e0 e3]", counts: "2 2 0 0"},
		"subject":   {wanted: erasure.Wanted{Subject: "canary subject", To: index.Bound{Given: true, Index: 2}}, left: "[e2 e3]", counts: "2 2 0 0"},
		"subject of an issuer": {wanted: erasure.Wanted{Subject: "canary subject", Issuer: "https://a.example"}, left: "[e0 e3]",
			counts: "2 2 0 0"},
		"another subject": {wanted: erasure.Wanted{Subject: "joe"}, left: "[e0 e1 e2 e3]", counts: "0 0 0 0"},
		"nobody":          {wanted: erasure.Wanted{Principal: "kim"}, left: "[e0 e1 e2 e3]", counts: "0 0 0 0"},
		"range": {wanted: erasure.Wanted{Agent: "agt_b", To: index.Bound{Given: true, Index: 3}},
			left: "[e0 e1 e3]", counts: "1 1 0 0"},
		"begin": {wanted: erasure.Wanted{Agent: "agt_a", From: index.Bound{Given: true, Index: 1}},
			left: "[e0 e2 e3]", counts: "1 1 0 0"},
		"event": {event: "e2", left: "[e0 e1 e3]", counts: "1 1 0 0"},
		"index": {event: "1", left: "[e0 e2 e3]", counts: "1 1 0 0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ledgertest.New(t))
			w.send(red, some()...)
			w.send(blue, some()...)
			var made erasure.Erasure
			if tt.event == "" {
				made = w.begin(red, tt.wanted)
			} else {
				var err error
				if made, err = w.erasures.AskForEvent(t.Context(), red, ann, tt.event, erasure.ByMistake); err != nil {
					t.Fatal(err)
				}
			}
			wantText(t, "state", w.find(red, made.ID).State, erasure.Waiting)
			later := some()[0] // but of no later event
			later.id, later.principal, later.trace = "later", "joe", "trc_1"
			w.send(red, later)
			w.drain()
			wantText(t, "left", w.left(red), strings.Replace(tt.left, "]", " later]", 1))
			wantText(t, "left of the other organization", w.left(blue), "[e0 e1 e2 e3]")
			got := w.find(red, made.ID)
			wantText(t, "counts", fmt.Sprint(got.Matched, got.Erased, got.Already, got.ApprovalsErased), tt.counts)
			wantText(t, "end", fmt.Sprintf("%s %v %q", got.State, got.Examined == got.End, got.Principal+got.Subject+got.Issuer), `done true ""`)
			if _, err := w.erasures.Find(t.Context(), blue, made.ID); !fault.Is(err, fault.NotFound) {
				t.Errorf("the other organization finds it: %v", err)
			}
			w.Audit(t, red) // what remains can be proved
		})
	}
}

// The statements contain codes and ids, never a principal.
func TestStatements(t *testing.T) {
	w := newWorld(t, ledgertest.New(t))
	w.send(red, some()...)
	made := w.begin(red, erasure.Wanted{Principal: "mia@red", Reason: erasure.ByConsent})
	w.drain()
	again := w.begin(red, erasure.Wanted{Agent: "agt_a"})
	w.drain()
	got := w.find(red, again.ID)
	wantText(t, "counts", fmt.Sprint(got.Matched, got.Erased, got.Already), "2 1 1")
	want := []ledgertest.Statement{
		{Kind: "ledger_erasure_requested", Principal: ann,
			Payload: fmt.Sprintf(`{"by":"principal","end":4,"erasure_id":%q,"reason_code":"consent_withdrawn"}`, made.ID)},
		{Kind: "ledger_envelope_erased", Principal: ann, Payload: `{"ranges":[[0,1],[3,4]],"reason":"consent_withdrawn"}`},
		{Kind: "ledger_erasure_requested", Principal: ann,
			Payload: fmt.Sprintf(`{"agent_id":"agt_a","by":"agent_id","end":6,"erasure_id":%q,"reason_code":"data_subject_request"}`, again.ID)},
		{Kind: "ledger_envelope_erased", Principal: ann, Payload: `{"ranges":[[1,2]],"reason":"data_subject_request"}`},
	}
	wantText(t, "statements", w.Audit(t, red), want)
	wantText(t, "places of the principal", w.places(red, "mia@red"), "[]")
	wantText(t, "places of a text", w.places(red, "canary three"), "[]")
}

// An erasure by subject erases the approvals that are for it, even if no event asked for them, and states no subject. Those of its
// events are erased too if they were asked for without the subject.
func TestEraseBySubject(t *testing.T) {
	w := newWorld(t, ledgertest.New(t))
	w.furnish(red)
	w.activate(red, "pol")
	events := some()
	events[3].agent = string(w.first[red])
	question := w.question(red, events[3])
	ask := func(issuer string) approval.Approval {
		t.Helper()
		q := question
		if issuer != "" {
			q.OnBehalfOf = &event.OnBehalfOf{Issuer: issuer, Subject: "canary subject"}
		}
		return w.ask(red, q)
	}
	plain, first, second := ask(""), ask("https://a.example"), ask("https://b.example")
	wantErased := func(name string, a approval.Approval, want bool) {
		t.Helper()
		if found, err := w.approvals.Find(t.Context(), red, a.ID); err != nil || (found.ErasedAt != 0) != want || (found.OnBehalfOf == nil) != (want || a.OnBehalfOf == nil) {
			t.Errorf("%s: got erased at %v, %+v, %v", name, found.ErasedAt, found.OnBehalfOf, err)
		}
	}
	w.send(red, events...)
	made := w.begin(red, erasure.Wanted{Subject: "canary subject", Issuer: "https://a.example"})
	w.drain()
	got := w.find(red, made.ID)
	wantText(t, "counts", fmt.Sprint(got.Matched, got.Erased, got.Already, got.ApprovalsErased), "2 2 0 1")
	wantErased("of the issuer", first, true)
	wantErased("of another issuer", second, false)
	wantErased("of nobody", plain, false)
	w.begin(red, erasure.Wanted{Subject: "canary subject"})
	w.drain()
	wantErased("of any issuer", second, true)
	wantErased("of nobody, about the same act as an event", plain, true)
	wantText(t, "left", w.left(red), "[]")
	wantText(t, "places of the subject", w.places(red, "canary subject"), "[]")
}

func TestAskRefuses(t *testing.T) {
	w := newWorld(t, ledgertest.New(t))
	w.furnish(red)
	for name, wanted := range map[string]erasure.Wanted{
		"nothing":        {Reason: erasure.ByRequest},
		"two":            {Agent: "a", Trace: "b", Reason: erasure.ByRequest},
		"no reason":      {Agent: "a"},
		"own reason":     {Agent: "a", Reason: erasure.ByRetention},
		"text":           {Agent: "a", Reason: "Mia asked"},
		"agent":          {Agent: "a b", Reason: erasure.ByRequest},
		"trace":          {Trace: "..", Reason: erasure.ByRequest},
		"principal":      {Principal: "a\n", Reason: erasure.ByRequest},
		"subject":        {Subject: "a\n", Reason: erasure.ByRequest},
		"SPIFFE ID":      {Subject: "spiffe://A", Reason: erasure.ByRequest},
		"issuer":         {Subject: "a", Issuer: "a", Reason: erasure.ByRequest},
		"issuer alone":   {Principal: "a", Issuer: "https://a.example", Reason: erasure.ByRequest},
		"long principal": {Principal: strings.Repeat("x", 257), Reason: erasure.ByRequest},
	} {
		_, err := w.erasures.Ask(t.Context(), red, ann, wanted)
		refused(t, name, err, fault.Invalid, "")
	}
	_, err := w.erasures.AskForEvent(t.Context(), red, ann, "0", erasure.ByRequest)
	refused(t, "the service's own event", err, fault.Invalid, "")
	_, err = w.erasures.AskForEvent(t.Context(), red, ann, "unknown", erasure.ByRequest)
	refused(t, "an unknown event", err, fault.NotFound, "")
	if got, err := w.erasures.List(t.Context(), red, "", 10); err != nil || len(got) != 0 {
		t.Errorf("list: got %v, %v", got, err)
	}
}

// Only so many erasures may wait, and more once some are done. Those of another organization do not count.
func TestBound(t *testing.T) {
	w := newWorld(t, ledgertest.New(t))
	for range erasure.MaxOpen {
		w.begin(red, erasure.Wanted{Agent: "a"})
	}
	_, err := w.erasures.Ask(t.Context(), red, ann, erasure.Wanted{Agent: "a", Reason: erasure.ByTest})
	refused(t, "one more", err, fault.RateLimited, "rate_limited")
	w.begin(blue, erasure.Wanted{Agent: "a"})
	w.drain()
	w.Pass(time.Second)
	last := w.begin(red, erasure.Wanted{Agent: "a"})
	page, err := w.erasures.List(t.Context(), red, "", 2)
	if err != nil || len(page) != 2 || page[0].ID != last.ID {
		t.Fatalf("list: got %v, %v", page, err)
	}
	seen := map[erasure.ID]bool{}
	for before := erasure.ID(""); ; {
		page, err := w.erasures.List(t.Context(), red, before, 7)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			seen[e.ID] = true
		}
		before = page[len(page)-1].ID
	}
	wantText(t, "listed", len(seen), erasure.MaxOpen+1)
}

// All copies of a payload are erased: in the envelope, in the approval, and in notices in the outbox and among dead
// letters. The approval continues.
func TestEveryPlace(t *testing.T) {
	for name, ask := range map[string]func(w *world, e sent) (erasure.Erasure, error){
		"by event": func(w *world, _ sent) (erasure.Erasure, error) {
			return w.erasures.AskForEvent(w.t.Context(), red, ann, "paid", erasure.ByRequest)
		},
		"by trace": func(w *world, e sent) (erasure.Erasure, error) {
			return w.erasures.Ask(w.t.Context(), red, ann, erasure.Wanted{Trace: id.Trace(e.trace), Reason: erasure.ByRequest})
		},
		"by principal": func(w *world, e sent) (erasure.Erasure, error) {
			return w.erasures.Ask(w.t.Context(), red, ann, erasure.Wanted{Principal: e.principal, Reason: erasure.ByRequest})
		},
		"by agent": func(w *world, e sent) (erasure.Erasure, error) {
			return w.erasures.Ask(w.t.Context(), red, ann, erasure.Wanted{Agent: id.Agent(e.agent), Reason: erasure.ByRequest})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ledgertest.New(t))
			w.furnish(red)
			e := sent{"paid", string(w.first[red]), "trc_pay", "maria@example.com", "acme.refund", "canary to maria"}
			pending := w.ask(red, w.question(red, e))
			w.send(red, e)
			w.notify()
			if got := w.places(red, e.text); len(got) < 3 {
				t.Fatalf("the text is at %v before", got)
			}
			made, err := ask(w, e)
			if err != nil {
				t.Fatal(err)
			}
			w.drain()
			wantText(t, "places of the text", w.places(red, e.text), "[]")
			wantText(t, "places of the principal", w.places(red, e.principal), "[]")
			got := w.find(red, made.ID)
			if got.State != erasure.Done || got.ApprovalsErased != 1 || got.Erased != 1 || got.DeliveriesCorrected == 0 {
				t.Errorf("got %+v", got)
			}
			found, err := w.approvals.Find(t.Context(), red, pending.ID)
			if err != nil || found.Payload != nil || found.Principal != "" || found.ErasedAt == 0 || found.Status != approval.Pending {
				t.Errorf("approval: got %+v, %v", found, err)
			}
			_, err = w.approvals.Vote(t.Context(), red, pending.ID, approval.Ballot{Account: "maria", Vote: approval.Approve, Action: pending.ActionDigest})
			refused(t, "a vote of the erased principal", err, fault.Forbidden, "")
			voted, err := w.approvals.Vote(t.Context(), red, pending.ID, approval.Ballot{Account: "acc_bob", Vote: approval.Approve, Action: pending.ActionDigest})
			if err != nil || voted.Status != approval.Approved || voted.ErasedAt == 0 {
				t.Errorf("vote: got %+v, %v", voted, err)
			}
			if _, made, err := w.approvals.Ask(t.Context(), red, w.question(red, e)); err != nil || made {
				t.Errorf("asked again: made %v, %v", made, err)
			}
			if err := w.approvals.Revoke(t.Context(), red, ann, pending.ID, approval.Remark{}); err != nil {
				t.Error(err)
			}
			if got := w.places(red, `"hidden_principal"`); len(got) != 0 {
				t.Errorf("the hash of the principal is in %v after the end", got)
			}
		})
	}
}

// An erasure of an approval's event also erases the approval's payload; the event's own envelope stays.
func TestEraseApproval(t *testing.T) {
	w := newWorld(t, ledgertest.New(t))
	w.furnish(red)
	pending := w.ask(red, w.question(red, some()[3]))
	at := w.State(t, red).Size() - 1
	made, err := w.erasures.AskForEvent(t.Context(), red, ann, fmt.Sprint(at), erasure.BySecret)
	if err != nil {
		t.Fatal(err)
	}
	w.drain()
	got := w.find(red, made.ID)
	wantText(t, "erasure", fmt.Sprintf("%s %v %d %d", got.State, got.Approval == pending.ID, got.ApprovalsErased, got.Erased), "done true 1 0")
	statements := w.Audit(t, red)
	wantText(t, "statement", statements[len(statements)-1].Payload,
		fmt.Sprintf(`{"approval_ids":[%q],"erasure_id":%q,"reason":"secret_disclosed"}`, pending.ID, made.ID))
	wantText(t, "places of the text", w.places(red, some()[3].text), "[]")
}
