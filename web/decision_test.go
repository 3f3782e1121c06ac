package web

import (
	"slices"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

func TestStoryOfDecision(t *testing.T) {
	decided := func(policyID string, version uint64, effective id.Decision) event.Policy {
		return event.Policy{Evaluated: true, PolicyID: policyID, PolicyVersion: version, Effective: effective}
	}
	for name, c := range map[string]struct {
		policy event.Policy
		want   []storyLine
	}{
		"not evaluated":    {event.Policy{}, nil},
		"no active policy": {decided("none", 0, id.Allow), []storyLine{{Who: "No policy", Words: "was active, so the call was allowed"}}},
		"allowed":          {decided("refunds", 3, id.Allow), []storyLine{{Who: "The policy", What: "refunds", Words: "allowed it:", Rest: ", version 3"}}},
		"denied":           {decided("refunds", 3, id.Deny), []storyLine{{Class: "is-bad", Who: "The policy", What: "refunds", Words: "denied it:", Rest: ", version 3"}}},
	} {
		v := new(eventView)
		(&story{v: v}).addDecision(&event.Record{Policy: c.policy})
		if !slices.Equal(v.Story, c.want) {
			t.Errorf("%s: got %+v, want %+v", name, v.Story, c.want)
		}
	}
}
