package evidence

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/verify/pack"
)

// pageKeys is the number of keys of an agent per read.
const pageKeys = 100

// describe reads the records of the organization that the pack contains, except for the events.
func (x *Exporter) describe(ctx context.Context, p *plan) (err error) {
	if p.policyFile, err = x.Transparency.PolicyText(ctx, p.state); err != nil {
		return err
	}
	if err := x.selectApprovals(ctx, p); err != nil {
		return err
	}
	list := pack.Agents{Agents: []pack.Agent{}}
	p.agentNames = make(map[id.Agent]string)
	size := 0
	for _, name := range slices.Sorted(maps.Keys(p.agents)) {
		a, err := x.describeAgent(ctx, p.Tenant, name)
		if err != nil {
			return err
		}
		list.Agents = append(list.Agents, a)
		if a.DisplayName != nil {
			p.agentNames[name] = *a.DisplayName
		}
		if size += 200 * (1 + len(a.Keys)); size > pack.MaxAgentsFile { // a lower bound of the size of their text
			return errTooLarge()
		}
	}
	p.counts.Agents = uint64(len(list.Agents))
	if p.agentsFile, err = jcs.Marshal(list); err == nil && len(p.agentsFile) > pack.MaxAgentsFile {
		err = errTooLarge()
	}
	return err
}

// describeAgent returns an agent with its keys.
func (x *Exporter) describeAgent(ctx context.Context, t id.Tenant, name id.Agent) (d pack.Agent, err error) {
	a, err := x.Agents.Agent(ctx, t, name)
	if err != nil {
		return d, fmt.Errorf("read agent of an event: %v", err) // wrapped with %v, so that it does not become a 404
	}
	d.AgentID = a.ID
	if a.DisplayName != "" {
		d.DisplayName = &a.DisplayName
	}
	d.Keys = []pack.AgentKey{}
	for after := id.Key(""); ; {
		keys, err := x.Agents.ListKeys(ctx, t, name, after, pageKeys)
		if err != nil {
			return d, fmt.Errorf("read keys of an agent: %w", err)
		}
		for i := range keys {
			d.Keys = append(d.Keys, describeKey(&keys[i]))
			after = keys[i].ID
		}
		if len(keys) < pageKeys {
			return d, nil
		}
	}
}

func describeKey(k *agent.Key) pack.AgentKey {
	d := pack.AgentKey{KeyID: k.ID, PublicKey: k.Multikey, DID: "did:key:" + k.Multikey, Custody: k.Custody,
		Status: string(k.Status), RegisteredAt: k.RegisteredAt, CompromisedFrom: k.CompromisedFrom}
	if k.EndedAt != 0 {
		d.EndedAt = &k.EndedAt
	}
	return d
}

// describeLogKeys describes the keys of the log.
func describeLogKeys(s *log.State) ([]byte, error) {
	var list pack.Keys
	for _, k := range s.LogKeys() {
		d := pack.Key{VerifierKey: k.Verifier.String(), Use: "log", FromSize: k.From}
		if k.To != log.NoEnd {
			d.ToSize = &k.To
		}
		list.Keys = append(list.Keys, d)
	}
	return jcs.Marshal(list)
}

// readPolicy returns a version of a policy.
func (x *Exporter) readPolicy(ctx context.Context, t id.Tenant, digest id.Hash, named policyVersion) (p policy.Policy, err error) {
	v, err := x.Policies.Get(ctx, t, named.id, named.version)
	if err != nil {
		return p, fmt.Errorf("read policy of an event: %v", err)
	}
	parsed, err := policy.ParseStored(v.Document)
	if err == nil && parsed.Digest() != digest {
		err = fmt.Errorf("version %d has a different digest than the record", named.version)
	}
	if err != nil {
		return p, fmt.Errorf("read policy of an event: %w", err)
	}
	return parsed, nil
}

// selectApprovals keeps the approvals that match the request: if it names a subject, those that a shown act requested or used.
func (x *Exporter) selectApprovals(ctx context.Context, p *plan) error {
	var fitting []*approvalPlan
	named := func(approval.ID) bool { return true }
	if p.Wanted.request.Subject != "" {
		ofActs := p.acts.Approvals()
		named = func(a approval.ID) bool { return ofActs[string(a)] }
	}
	for _, a := range p.approvals {
		stored, err := x.findApproval(ctx, p.Tenant, a.name)
		if err != nil {
			return err
		}
		if !named(a.name) || stored == nil && p.Wanted.request.Filters() ||
			stored != nil && !p.Wanted.request.Matches(stored.Agent, stored.Trace, stored.Tool) {
			p.acts.RemoveApproval(string(a.name))
			continue
		}
		fitting = append(fitting, a)
	}
	p.approvals, p.byName, p.counts.Approvals = fitting, nil, uint64(len(fitting))
	return nil
}

// findApproval returns an approval, or nil if the organization no longer has it: the approvals of a log are not copied
// to its successor.
func (x *Exporter) findApproval(ctx context.Context, t id.Tenant, name approval.ID) (*approval.Approval, error) {
	a, err := x.Approvals.Find(ctx, t, name)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	return &a, err
}
