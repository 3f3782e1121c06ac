package console_test

import (
	"encoding/json"
	"net/http"
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
	want(t, "asked", page, http.StatusOK, "waiting for votes", "59 minutes left", "0 of 2 approvals", "acme.refund", s.Red.Agent.AgentID, "the desk", asked.ActionDigest,
		"money leaves", "Refunds &amp; co", "the agreement of 2 people", "payload != {&#34;n&#34;: -1}", "acme.orders.read", `<bdi>iban</bdi>`, `<bdi>DE1</bdi>`, "number", "1000", "empty list", "true or false",
		"/console/events?agent_id=", "/console/traces/trc")
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
	want(t, "one voted", ann.Get(path+"?notice=voted"), http.StatusOK, "Your vote is counted.", "1 of 2 approvals", "You have already voted on this.", "fine by me", "in_budget")
	want(t, "twice", ann.Post(path, "do", "approve", "action_digest", asked.ActionDigest), http.StatusConflict, "You have already voted on this")
	want(t, "the second", eve.Post(path, "do", "approve", "action_digest", asked.ActionDigest), http.StatusSeeOther)
	want(t, "given", ann.Get(path), http.StatusOK, "It is approved, not used yet", "It has already been decided.", "Revoke the approval")
	s.Red.Consume(asked)
	page = eve.Get(path)
	want(t, "used", page, http.StatusOK, "It is approved and used", "eve@red.example")
	wantNot(t, "used", page, "Revoke the approval", `value="approve"`, "data-every")
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
	want(t, "denied", ann.Get("/console/approvals/"+denied.ID), http.StatusOK, "It is denied", "What the agent is told", "too dear")
	want(t, "a long reason", ann.Post("/console/approvals/"+revoked.ID, "do", "revoke", "reason", string(make([]byte, 2000))), http.StatusUnprocessableEntity, "reason must have at most")
	want(t, "revoke", ann.Post("/console/approvals/"+revoked.ID, "do", "revoke", "reason", "a mistake", "revoke_code", "mistake"), http.StatusSeeOther)
	want(t, "revoked", ann.Get("/console/approvals/"+revoked.ID+"?notice=approval-revoked"), http.StatusOK, "It is revoked by a member", "a mistake", "mistake", "The approval is revoked.")
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
		want(t, role, page, http.StatusOK, "What is asked")
		if may.read {
			want(t, role, page, http.StatusOK, "canary")
		} else {
			want(t, role, page, http.StatusOK, "Your role does not show payloads.")
			wantNot(t, role, page, "canary")
		}
		if may.vote {
			want(t, role, page, http.StatusOK, `value="approve"`, "Revoke the approval")
			continue
		}
		want(t, role, page, http.StatusOK, "Your role does not vote.")
		wantNot(t, role, page, `value="approve"`, "Revoke the approval")
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
