package client

import (
	"errors"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
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

// A question has numbers that a double cannot hold in recorded form, as an intent has them.
func TestQuestionsHaveExactNumbers(t *testing.T) {
	for payload, want := range map[string]string{
		`{"id":9007199254740993,"n":1.0}`: `{"$tagged":true,"id":{"$number":"9007199254740993"},"n":1}`,
		`{"o":{"$number":"5"}}`:           `{"$tagged":true,"o":{"$object":{"$number":"5"}}}`,
		`{"b":1,"a":2}`:                   `{"a":2,"b":1}`,
		`{}`:                              `{}`,
		`{"$tagged":true}`:                "",
		`[9007199254740993]`:              "",
		`null`:                            "",
		`{"n":1e10000}`:                   "",
	} {
		got, err := recordPayload(jsontext.Value(payload))
		text, encodeErr := jcs.Marshal(got)
		if (err == nil) != (want != "") || err == nil && (encodeErr != nil || string(text) != want) {
			t.Errorf("%s: got %s, %v; want %s", payload, text, err, want)
		}
	}
}
