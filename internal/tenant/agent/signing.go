package agent

import (
	"context"
	"hash/maphash"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/tlog"
)

// SigningKey returns a key of an agent in any state, as of the config version of s or later. agent and key must be
// valid names of an envelope. It returns fault.NotFound if the agent has no such key.
func (a *Agents) SigningKey(ctx context.Context, s *log.State, agent id.Agent, key id.Key) (Key, error) {
	name := signingKeyName{tenant: s.Identity().Tenant, agent: agent, key: key}
	if k, found := a.keys.Lookup(name, s.ConfigVersion()); found {
		return k, nil
	}
	return a.loadSigningKey(ctx, name, s.ConfigVersion())
}

// CompromisedFrom returns the index from which a key is not trusted, or tlog.MaxSize, which no event has, if it is
// not compromised. agent is the agent of the event; for a bridge key, that is the agent for which it signed.
func (a *Agents) CompromisedFrom(ctx context.Context, s *log.State, agent id.Agent, key id.Key) (id.Index, error) {
	owner, err := a.findKeyOwner(ctx, s.Identity().Tenant, agent, key)
	if err != nil {
		return tlog.MaxSize, err
	}
	k, err := a.SigningKey(ctx, s, owner, key)
	if err != nil || k.CompromisedFrom == nil {
		return tlog.MaxSize, err
	}
	return *k.CompromisedFrom, nil
}

// signingKeyName identifies a key of an agent, whether or not the organization has it.
type signingKeyName struct {
	tenant id.Tenant
	agent  id.Agent
	key    id.Key
}

// hashKeyID returns a hash that spreads keys evenly over the shards. Key IDs are random, so hashing the ID is enough.
func hashKeyID() func(signingKeyName) uint64 {
	seed := maphash.MakeSeed()
	return func(n signingKeyName) uint64 { return maphash.String(seed, string(n.key)) }
}

// loadSigningKey copies the name first, because it may be part of a large request.
func (a *Agents) loadSigningKey(ctx context.Context, n signingKeyName, version uint64) (Key, error) {
	n.agent, n.key = id.Agent(strings.Clone(string(n.agent))), id.Key(strings.Clone(string(n.key)))
	k, err := a.keys.GetAt(ctx, n, version, func(ctx context.Context) (Key, error) {
		k, err := a.readKey(ctx, n.tenant, n.agent, n.key)
		if err != nil {
			return k.Key, err
		}
		owner, _, err := a.readAgent(ctx, n.tenant, n.agent)
		k.AgentInactive = owner.Inactive
		return k.Key, err
	})
	if fault.Is(err, fault.Internal) { // ctx ended
		err = errUnreadable("read signing key", err)
	}
	return k, err
}
