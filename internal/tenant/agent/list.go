package agent

import (
	"context"
	"iter"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
)

// ListAgents returns at most limit agents with an ID after the given one, in ascending order.
func (a *Agents) ListAgents(ctx context.Context, t id.Tenant, after id.Agent, limit int) ([]Agent, error) {
	found, err := a.records.Scan(ctx, t, kindAgent, records.After(string(after)).Begin, "", limit)
	if err != nil {
		return nil, errUnreadable("list agents", err)
	}
	agents := make([]Agent, len(found))
	for i, r := range found {
		if agents[i], err = decodeAgentRecord(r); err != nil {
			return nil, errUnreadable("list agents", err)
		}
	}
	return agents, nil
}

// Exists reports whether an organization has an agent. Agents are never deleted.
func (a *Agents) Exists(ctx context.Context, t id.Tenant, agent id.Agent) (bool, error) {
	return a.recordExists(ctx, t, kindAgent, string(agent))
}

// Agent returns an agent of an organization, or fault.NotFound if there is none with that ID.
func (a *Agents) Agent(ctx context.Context, t id.Tenant, agent id.Agent) (Agent, error) {
	found, _, err := a.readAgent(ctx, t, agent)
	return found, err
}

// readAgent is like Agent, and returns the version of the record.
func (a *Agents) readAgent(ctx context.Context, t id.Tenant, agent id.Agent) (found Agent, version uint64, err error) {
	r, err := a.records.Get(ctx, t, kindAgent, string(agent))
	if isAbsent(err) {
		return Agent{}, 0, errNotFound()
	}
	if err == nil {
		found, err = decodeAgentRecord(r)
	}
	if err != nil {
		return Agent{}, 0, errUnreadable("read agent", err)
	}
	return found, r.Version, nil
}

// ListKeys returns at most limit keys of an agent with an ID after the given one, in ascending order. It returns
// fault.NotFound if the organization does not have the agent.
func (a *Agents) ListKeys(ctx context.Context, t id.Tenant, agent id.Agent, after id.Key, limit int) ([]Key, error) {
	if err := a.requireAgent(ctx, t, agent); err != nil {
		return nil, err
	}
	keys := []Key{}
	for k, err := range a.readKeysAfter(ctx, t, agent, after, limit) {
		if err != nil {
			return keys, err
		}
		if keys = append(keys, k.Key); len(keys) == limit {
			break
		}
	}
	return keys, nil
}

// readKeysAfter yields the keys of an agent with an ID after the given one, in ascending order, reading one page at a
// time. It stops after yielding an error.
func (a *Agents) readKeysAfter(
	ctx context.Context, t id.Tenant, agent id.Agent, after id.Key, page int,
) iter.Seq2[storedKey, error] {
	keys := records.Range{Begin: keyRecordKey(agent, after), End: string(agent) + "0"} // "0" follows "/"
	if after != "" {
		keys.Begin = records.After(keys.Begin).Begin
	}
	return func(yield func(storedKey, error) bool) {
		for r, err := range records.Scan(ctx, a.records, t, kindKey, keys, page) {
			var k storedKey
			if err == nil {
				k, err = decodeKeyRecord(agent, r)
			}
			if err != nil {
				yield(k, errUnreadable("list keys", err))
				return
			}
			if !yield(k, nil) {
				return
			}
		}
	}
}
