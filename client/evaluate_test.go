package client

import (
	"errors"
	"reflect"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/fakeservice"
)

func TestEvaluate(t *testing.T) {
	s := fakeservice.Start(t, 2)
	o := s.Organization(0)
	o.Rules = map[id.Tool]id.Decision{"bank.refund.send": id.AllowWithObligation}
	c, _ := dial(t, s, o)
	s.Next(fakeservice.Cut, fakeservice.Unavailable)
	got, err := c.Evaluate(t.Context(), Question{Organization: o.ID, Agent: o.Agent, Tool: "bank.refund.send", Payload: map[string]any{"amount_usd": 12}})
	want := Decision{
		Decision: id.AllowWithObligation, PolicyID: "pol_1", RuleID: "rule_bank.refund.send", Reason: "rule for bank.refund.send, 1 members",
		Engine: "rules", PolicyVersion: 3, PolicyDigest: id.Hash{1}, InputDigest: id.Hash{2}, Obligations: []Obligation{{Type: "human_approval", Approvals: 2, TTLSeconds: 3600}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	got, err = c.Evaluate(t.Context(), Question{Organization: o.ID, Agent: "any", Tool: "crm.user.get"})
	if err != nil || got.Decision != id.Allow || got.PolicyID != "none" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestEvaluateRefused(t *testing.T) {
	s := fakeservice.Start(t, 2)
	c, _ := dial(t, s, s.Organization(0))
	for name, tc := range map[string]struct {
		q    Question
		want int
	}{
		"another organization": {Question{Organization: s.Organization(1).ID, Agent: "a", Tool: "t"}, 403},
		"no tool":              {Question{Organization: s.Organization(0).ID, Agent: "a"}, 422},
	} {
		_, err := c.Evaluate(t.Context(), tc.q)
		var got *Error
		if !errors.As(err, &got) || got.Status != tc.want {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := c.Evaluate(t.Context(), Question{Payload: make(chan int)}); err == nil {
		t.Error("payload that is no JSON: no error")
	}
	s.Next(fakeservice.NotJSON)
	if d, err := c.Evaluate(t.Context(), Question{Agent: "a", Tool: "t"}); err == nil || d.Decision != 0 {
		t.Errorf("a page: got %+v, %v", d, err)
	}
}
