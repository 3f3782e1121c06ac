package evidence

import (
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/verify/pack"
)

// A plan at each bound of a pack is accepted, and one beyond it is rejected.
func TestPlanBounds(t *testing.T) {
	hash := func(i int) id.Hash { return id.Hash{byte(i >> 16), byte(i >> 8), byte(i)} }
	for name, c := range map[string]struct {
		most int
		add  func(p *plan, i int)
	}{
		"agents":    {pack.MaxAgents, func(p *plan, i int) { p.agents[id.Agent(hash(i).String())] = true }},
		"policies":  {pack.MaxPolicies, func(p *plan, i int) { p.policies[hash(i)] = policyVersion{} }},
		"erasures":  {pack.MaxLines, func(p *plan, i int) { p.erasing[id.Index(i+1)] = true }},
		"approvals": {pack.MaxLines, func(p *plan, i int) { p.byName[approval.ID(hash(i).String())] = &approvalPlan{} }},
		"megabytes": {maxBytes / 1_000_000, func(p *plan, _ int) { p.bytes += 1_000_000 }},
	} {
		p := &plan{agents: map[id.Agent]bool{}, policies: map[id.Hash]policyVersion{}, erasing: map[id.Index]bool{},
			byName: map[approval.ID]*approvalPlan{}}
		for i := range c.most {
			c.add(p, i)
		}
		if err := p.checkBounds(); err != nil {
			t.Errorf("%d %s: got %v", c.most, name, err)
		}
		c.add(p, c.most)
		if err := p.checkBounds(); !fault.Is(err, fault.Invalid) {
			t.Errorf("%d %s: got %v, want fault.Invalid", c.most+1, name, err)
		}
	}
}

func TestRangeBound(t *testing.T) {
	for end, want := range map[id.Index]bool{pack.MaxEvents + 5: true, pack.MaxEvents + 6: false} {
		p := &plan{begin: 5, end: end}
		if err := p.checkRange(Wanted{}); (err == nil) != want || err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("[5, %d): got %v", end, err)
		}
	}
}

// Tables count many values in bounded memory, and count every event.
func TestTablesAreBounded(t *testing.T) {
	groups := map[string]*group{}
	for i := range maxGroups + 50 {
		groupOf(groups, id.Hash{byte(i >> 16), byte(i >> 8), byte(i)}.String()).count(&event.Policy{Effective: id.Allow})
	}
	events := uint64(0)
	for _, g := range groups {
		events += g.Events
	}
	if len(groups) != maxGroups+1 || events != maxGroups+50 || groups[others].Events != 50 {
		t.Errorf("%d groups of %d events", len(groups), events)
	}
	if shown := newTable("", "", groups, false); len(shown.Rows) != maxRows || shown.Hidden != maxGroups+1-maxRows {
		t.Errorf("%d rows, %d hidden", len(shown.Rows), shown.Hidden)
	}
	var r report
	for i := range maxRows + 10 {
		r.addDecision(approval.ID(id.Hash{byte(i)}.String()), &event.Envelope{Payload: []byte(`{}`)}, nil)
	}
	if len(r.approvals) != maxRows {
		t.Errorf("%d approvals in the report", len(r.approvals))
	}
}
