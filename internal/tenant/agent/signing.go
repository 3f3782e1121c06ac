package agent

import (
	"context"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/tlog"
)

// SigningKey returns a key of an agent in whatever state it is, as of the config
// version of s or later. agent and key are of the envelope's grammar.
// fault.NotFound when that agent has no such key.
func (a *Agents) SigningKey(ctx context.Context, s *log.State, agent id.Agent, key id.Key) (Key, error) {
	name := cacheName{tenant: s.Identity().Tenant, agent: agent, key: key}
	if e := a.cache.get(name, s.ConfigVersion()); e != nil {
		return e.key, nil
	}
	return a.readSigningKey(ctx, name, s.ConfigVersion())
}

// CompromisedFrom returns the index from which on a key is not to be trusted:
// tlog.MaxSize, which no event has, for one without such a claim. agent is that of
// the event, which for a key of the bridge is the one that it signed for.
func (a *Agents) CompromisedFrom(ctx context.Context, s *log.State, agent id.Agent, key id.Key) (id.Index, error) {
	owner, err := a.keyOwner(ctx, s.Identity().Tenant, agent, key)
	if err != nil {
		return tlog.MaxSize, err
	}
	k, err := a.SigningKey(ctx, s, owner, key)
	if err != nil || k.CompromisedFrom == nil {
		return tlog.MaxSize, err
	}
	return *k.CompromisedFrom, nil
}

func (a *Agents) readSigningKey(ctx context.Context, n cacheName, version uint64) (Key, error) {
	k, err := a.key(ctx, n.tenant, id.Agent(strings.Clone(string(n.agent))), n.key)
	if err != nil {
		return Key{}, err
	}
	a.cache.put(n.tenant, &cacheEntry{version: version, key: k.Key})
	return k.Key, nil
}
