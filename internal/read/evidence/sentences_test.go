package evidence

import (
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/policy"
)

// The sentence of a rule says on whose behalf the agents act that it is about.
func TestSentenceOfSubjects(t *testing.T) {
	for _, tc := range []struct {
		of   *policy.Subject
		want string
	}{
		{nil, "The bot"},
		{&policy.Subject{Verified: true}, "The bot on behalf of anyone (verified)"},
		{&policy.Subject{Issuer: "https://login.example"}, "The bot on behalf of anyone of https://login.example (claimed or verified)"},
		{&policy.Subject{Issuer: "https://login.example", Subject: "u1", Verified: true}, "The bot on behalf of u1 of https://login.example (verified)"},
	} {
		r := policy.Rule{ID: "r", Tool: "acme.pay", Decision: id.Deny, Agents: []id.Agent{"agt_1"}, OnBehalfOf: tc.of}
		if got := describeRule(&r, map[id.Agent]string{"agt_1": "The bot"}); got.Who != tc.want || got.Verb != "must not call" {
			t.Errorf("got %q, want %q", got.Who, tc.want)
		}
	}
}
