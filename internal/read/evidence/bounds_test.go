package evidence

import (
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/packacts"
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

// The file of acts counts.
func TestActsAreInThePlan(t *testing.T) {
	for spare, want := range map[int64]bool{0: true, -1: false} {
		p := &plan{acts: packacts.New(nil)}
		p.acts.AddEvent(1, &event.Record{Signer: event.SignerAgent, EventID: "e", Policy: event.Policy{Evaluated: true}}, nil)
		if p.acts.Size() < 200 {
			t.Fatalf("an act takes %d bytes", p.acts.Size())
		}
		p.bytes = maxBytes - int64(p.acts.Size()) - spare
		if err := p.joinActs(); (err == nil) != want || err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%d bytes to spare: got %v", spare, err)
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

// The tables of the report are bounded, and the acts in it are the latest ones.
func TestReportIsBounded(t *testing.T) {
	var r report
	for i := range maxRows + 10 {
		r.addDecision(approval.ID(id.Hash{byte(i)}.String()), &event.Envelope{Payload: []byte(`{}`)}, nil)
	}
	if len(r.approvals) != maxRows {
		t.Errorf("%d approvals in the report", len(r.approvals))
	}
	for i := range maxActs + 10 {
		r.addAct(&packacts.Line{Index: id.Index(i), Record: &event.Record{}, Outcome: packacts.Done})
		if rows := r.latestActs(); len(rows) != min(i+1, maxActs) || rows[0].Index != number(uint64(i)) {
			t.Fatalf("after %d acts: %d rows, the latest is %s", i+1, len(rows), rows[0].Index)
		}
	}
	if r.counts.Count != maxActs+10 {
		t.Errorf("%d acts counted", r.counts.Count)
	}
}
