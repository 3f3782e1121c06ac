package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// Two approvers vote, and the agent uses the approval once. Each step is shown in words.
func TestVotes(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	eve := s.SignIn(s.Red.Join("eve", "approver"))
	requireApproval(ann, 2, "money leaves")
	s.Red.Send("before", nil)
	asked := s.Red.Ask(map[string]any{"actor_principal": "the desk", "payload": json.RawMessage(`{"amount":"10","to":{"iban":"DE1","list":[1,true,null,{},[]]},"n":1e3}`)})
	path := "/console/approvals/" + asked.ID
	page := ann.Get(path)
	want(t, "asked", page, http.StatusOK, "2 approvals needed · 59 min left", "0 of 2 approvals", "acme.refund", s.Red.Agent.AgentID, "the desk", asked.ActionDigest,
		"money leaves", "Refunds &amp; co", "the agreement of 2 people", "payload != {&#34;n&#34;: -1}", "acme.orders.read", `<bdi>iban</bdi>`, `<bdi>DE1</bdi>`, "1000", "<bdi>[]</bdi>", "<bdi>true</bdi>",
		"/console/events?agent_id=", "/console/activity?agent=", "/console/traces/trc")
	for what, got := range map[string]servicetest.Answer{"read": bob.Get(path), "vote": bob.Post(path, "do", "approve", "action_digest", asked.ActionDigest), "revoke": bob.Post(path, "do", "revoke")} {
		want(t, "the other organization: "+what, got, http.StatusNotFound)
		wantNot(t, "the other organization: "+what, got, "acme.refund", "DE1")
	}
	want(t, "another action", ann.Post(path, "do", "approve", "action_digest", s.Blue.ID), http.StatusUnprocessableEntity)
	refused := ann.Post(path, "do", "approve", "action_digest", asked.ActionDigest, "reason_code", "No Code", "comment", "a comment that stays")
	want(t, "a code", refused, http.StatusUnprocessableEntity, "reason_code must match", "a comment that stays", `value="No Code"`)
	voted := ann.Post(path, "do", "approve", "action_digest", asked.ActionDigest, "comment", "fine by me", "reason_code", "in_budget")
	if voted.Status != http.StatusSeeOther || voted.Header.Get("Location") != path+"?notice=voted" {
		t.Errorf("vote: got %d to %s", voted.Status, voted.Header.Get("Location"))
	}
	want(t, "one voted", ann.Get(path+"?notice=voted"), http.StatusOK, "Your vote is counted.", "1 of 2 approvals", "You approved it.", "1 more approval needed", "fine by me", "in_budget")
	want(t, "twice", ann.Post(path, "do", "approve", "action_digest", asked.ActionDigest), http.StatusConflict, "You have already voted on this")
	want(t, "the second", eve.Post(path, "do", "approve", "action_digest", asked.ActionDigest), http.StatusSeeOther)
	want(t, "given", ann.Get(path), http.StatusOK, "approved, not used yet", "You approved it.", "may run it now", "Withdraw the request")
	s.Red.Consume(asked)
	page = eve.Get(path)
	want(t, "used", page, http.StatusOK, "approved and used", "It has already been decided.", "eve@red.example")
	wantNot(t, "used", page, "Withdraw the request", `value="approve"`, "data-every")
	want(t, "revoke a used one", ann.Post(path, "do", "revoke", "reason", "late"), http.StatusConflict, "The approval is consumed")
	want(t, "an unknown one", ann.Get("/console/approvals/apr_none"), http.StatusNotFound)
	want(t, "an unknown form", ann.Post(path, "do", "x"), http.StatusUnprocessableEntity)
}

// One denial is final, and members revoke open approvals.
func TestDenyAndRevoke(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	requireApproval(ann, 1, "")
	denied, revoked := s.Red.Ask(map[string]any{"trace_id": "a"}), s.Red.Ask(map[string]any{"trace_id": "b"})
	want(t, "deny", ann.Post("/console/approvals/"+denied.ID, "do", "deny", "action_digest", denied.ActionDigest, "comment", "too dear"), http.StatusSeeOther)
	want(t, "denied", ann.Get("/console/approvals/"+denied.ID), http.StatusOK, "You denied it.", "What the agent is told", "too dear")
	want(t, "a long reason", ann.Post("/console/approvals/"+revoked.ID, "do", "revoke", "reason", string(make([]byte, 2000))), http.StatusUnprocessableEntity, "reason must have at most")
	want(t, "revoke", ann.Post("/console/approvals/"+revoked.ID, "do", "revoke", "reason", "a mistake", "revoke_code", "mistake"), http.StatusSeeOther)
	want(t, "revoked", ann.Get("/console/approvals/"+revoked.ID+"?notice=approval-revoked"), http.StatusOK, "revoked by a member", "a mistake", "mistake", "The approval is revoked.")
}

// For five minutes after an approving vote its voter, and nobody else, is offered to take it back while it is not used.
func TestTakeBack(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	bob := s.SignIn(s.Red.Join("bob", "approver"))
	requireApproval(ann, 1, "")
	first, second := s.Red.Ask(map[string]any{"trace_id": "a"}), s.Red.Ask(map[string]any{"trace_id": "b"})
	const offer = "Take it back"
	for _, asked := range []servicetest.Asked{first, second} {
		path := "/console/approvals/" + asked.ID
		wantNot(t, "before the vote", ann.Get(path), offer)
		want(t, "vote", ann.Post(path, "do", "approve", "action_digest", asked.ActionDigest), http.StatusSeeOther)
		want(t, "after the vote", ann.Get(path), http.StatusOK, offer)
		wantNot(t, "another voter", bob.Get(path), offer)
	}
	path := "/console/approvals/" + first.ID
	want(t, "taken back", ann.Post(path, "do", "take-back"), http.StatusSeeOther)
	page := ann.Get(path + "?notice=taken-back")
	want(t, "afterwards", page, http.StatusOK, "revoked by a member", "taken_back", "Your vote is taken back")
	wantNot(t, "afterwards", page, offer)
	s.Red.Consume(second)
	path = "/console/approvals/" + second.ID
	wantNot(t, "used", ann.Get(path), offer)
	want(t, "too late", ann.Post(path, "do", "take-back"), http.StatusConflict, "You can no longer take your vote back")

	third := s.Red.Ask(map[string]any{"trace_id": "c"})
	path = "/console/approvals/" + third.ID
	want(t, "before the vote", ann.Post(path, "do", "take-back"), http.StatusConflict, "You can no longer take your vote back")
	want(t, "vote", ann.Post(path, "do", "approve", "action_digest", third.ActionDigest), http.StatusSeeOther)
	want(t, "another voter", bob.Post(path, "do", "take-back"), http.StatusConflict, "You can no longer take your vote back")
	want(t, "afterwards", ann.Get(path), http.StatusOK, offer)
}

// Each role sees payloads according to its permissions, and the forms that the API would accept from it.
func TestApprovalRoles(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	requireApproval(ann, 1, "")
	asked := s.Red.Ask(map[string]any{"payload": map[string]any{"secret": "canary"}})
	path := "/console/approvals/" + asked.ID
	for role, may := range map[string]struct{ read, vote bool }{"admin": {true, true}, "approver": {true, true}, "auditor": {true, false}, "policy_editor": {}, "member": {}} {
		p := s.SignIn(s.Red.Join(role, role))
		page := p.Get(path)
		want(t, role, page, http.StatusOK, "asks to run")
		if may.read {
			want(t, role, page, http.StatusOK, "canary")
		} else {
			want(t, role, page, http.StatusOK, "Your role does not show payloads.")
			wantNot(t, role, page, "canary")
		}
		if may.vote {
			want(t, role, page, http.StatusOK, `value="approve"`, "Withdraw the request")
			continue
		}
		want(t, role, page, http.StatusOK, "Your role does not vote.")
		wantNot(t, role, page, `value="approve"`, "Withdraw the request")
		for _, do := range []string{"approve", "deny", "revoke"} {
			want(t, role, p.Post(path, "do", do, "action_digest", asked.ActionDigest), http.StatusForbidden, "Your role does not allow this")
		}
	}
}

// The page of an approval states that its payload was erased.
func TestErasedPayload(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	requireApproval(ann, 1, "")
	asked := s.Red.Ask(map[string]any{"trace_id": "forget", "payload": map[string]any{"secret": "canary"}})
	path := "/console/approvals/" + asked.ID
	want(t, "before", ann.Get(path), http.StatusOK, "canary")
	var begun struct {
		ID string `json:"erasure_id"`
	}
	ann.Call(http.MethodPost, "/v1/console/erasures", map[string]string{"trace_id": "forget", "reason": "test_data"}, &begun)
	for state := struct{ State string }{}; state.State != "done"; time.Sleep(10 * time.Millisecond) {
		ann.Call(http.MethodGet, "/v1/console/erasures/"+begun.ID, nil, &state)
	}
	page := ann.Get(path)
	want(t, "after", page, http.StatusOK, "The payload was erased on")
	wantNot(t, "after", page, "canary")
}

// An amount is compared with those of the agent's acts with the tool, if the reader may see them.
func TestRankOfAmount(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	ann.Call(http.MethodPut, "/v1/console/columns", map[string]any{"columns": []string{"order", "amount_usd"}}, nil)
	requireApproval(ann, 1, "money leaves")
	at := func(amount any) string {
		asked := s.Red.Ask(map[string]any{"trace_id": fmt.Sprint("t", amount), "payload": map[string]any{"amount_usd": amount, "order": "A-1"}})
		return s.SignIn(s.Red.Owner).Get("/console/approvals/" + asked.ID).Body
	}
	const words = " higher."
	if got := at(1); strings.Contains(got, words) {
		t.Error("without other acts: an amount is compared")
	}
	for i, amount := range []any{100, 200, 300.5, "400", nil} {
		s.Red.Send(fmt.Sprint("act", i), map[string]any{"tool_name": "acme.refund", "payload": map[string]any{"amount_usd": amount}})
	}
	s.Red.Send("other", map[string]any{"tool_name": "acme.other", "payload": map[string]any{"amount_usd": 1000}})
	s.Blue.Send("foreign", map[string]any{"tool_name": "acme.refund", "payload": map[string]any{"amount_usd": 1000}})
	for amount, want := range map[any]string{300: "1 of 3 amounts is higher.", 99.5: "3 of 3 amounts are higher.", 300.5: "None of 3 amounts is higher.", 200: "1 of 3 amounts is higher."} {
		if got := at(amount); !strings.Contains(got, want) {
			t.Errorf("%v: the page lacks %q", amount, want)
		}
	}
	if got := at("250"); strings.Contains(got, words) {
		t.Error("a text: it is compared")
	}
}
