package agent

import (
	"context"

	"github.com/agentledger/agentledger/id"
)

// ListAgents returns at most limit agents with an id after the given one, in
// ascending order of id.
func (a *Agents) ListAgents(ctx context.Context, t id.Tenant, after id.Agent, limit int) ([]Agent, error) {
	records, err := a.records.Scan(ctx, t, kindAgent, successor(string(after)), "", limit)
	if err != nil {
		return nil, unreadable("list agents", err)
	}
	agents := make([]Agent, len(records))
	for i, r := range records {
		if agents[i], err = decodeAgent(r); err != nil {
			return nil, unreadable("list agents", err)
		}
	}
	return agents, nil
}

// Exists reports whether an organization has an agent. One that it has, it has for ever.
func (a *Agents) Exists(ctx context.Context, t id.Tenant, agent id.Agent) (bool, error) {
	return a.exists(ctx, t, kindAgent, string(agent))
}

// Agent returns an agent of an organization; fault.NotFound when it has none of
// that id.
func (a *Agents) Agent(ctx context.Context, t id.Tenant, agent id.Agent) (Agent, error) {
	found, _, err := a.readAgent(ctx, t, agent)
	return found, err
}

// readAgent is Agent with the version of the record.
func (a *Agents) readAgent(ctx context.Context, t id.Tenant, agent id.Agent) (found Agent, version uint64, err error) {
	r, err := a.records.Get(ctx, t, kindAgent, string(agent))
	if absent(err) {
		return Agent{}, 0, errNotFound()
	}
	if err == nil {
		found, err = decodeAgent(r)
	}
	if err != nil {
		return Agent{}, 0, unreadable("read agent", err)
	}
	return found, r.Version, nil
}

// ListKeys returns at most limit keys of an agent with an id after the given
// one, in ascending order of id. fault.NotFound for an agent that the
// organization does not have.
func (a *Agents) ListKeys(ctx context.Context, t id.Tenant, agent id.Agent, after id.Key, limit int) ([]Key, error) {
	if err := a.mustHave(ctx, t, agent); err != nil {
		return nil, err
	}
	stored, err := a.scanKeys(ctx, t, agent, after, limit)
	keys := make([]Key, len(stored))
	for i := range stored {
		keys[i] = stored[i].Key
	}
	return keys, err
}

func (a *Agents) scanKeys(ctx context.Context, t id.Tenant, agent id.Agent, after id.Key, limit int) ([]storedKey, error) {
	begin := keyName(agent, after)
	if after != "" {
		begin = successor(begin)
	}
	end := string(agent) + "0" // "0" follows "/"
	records, err := a.records.Scan(ctx, t, kindKey, begin, end, limit)
	if err != nil {
		return nil, unreadable("list keys", err)
	}
	keys := make([]storedKey, len(records))
	for i, r := range records {
		if keys[i], err = decodeKey(agent, r); err != nil {
			return nil, unreadable("list keys", err)
		}
	}
	return keys, nil
}

// successor returns the first key after s, "" for "".
func successor(s string) string {
	if s == "" {
		return ""
	}
	return s + "\x00"
}
