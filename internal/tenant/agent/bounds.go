package agent

import (
	"context"
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/storage"
)

// Limits of the keys of one agent. They are the same in every plan, because a DID document shows all keys to every
// reader. An agent with more keys keeps them but gets no new ones.
const (
	MaxActiveKeys = 100
	MaxKeys       = 1000 // in all states
)

// agentResource counts an organization's agents. The bridge agent is not counted, because the service creates it.
func agentResource() quota.Resource {
	return quota.Resource{
		Kind:   kindAgent,
		Counts: func(r storage.Record) bool { return !strings.HasPrefix(r.Key, bridgePrefix) },
		Most:   func(l quota.Limits) uint64 { return l.Agents },
		Full: func(most uint64) string {
			return fmt.Sprintf("The organization has %s, as many as its plan allows", textcheck.Count(most, "agent"))
		},
	}
}

// Count returns how many agents an organization has, without its bridge agent.
func (a *Agents) Count(ctx context.Context, t id.Tenant) (uint64, error) {
	c, err := a.quota.Count(ctx, t, agentResource())
	return c.Made, err
}

// checkKeyLimit returns fault.Conflict if an agent has the maximum number of keys. A registration increments the
// config version that guards its append, so no two registrations can both take the last slot.
func (a *Agents) checkKeyLimit(ctx context.Context, t id.Tenant, agent id.Agent) error {
	all, active := 0, 0
	for k, err := range a.readKeysAfter(ctx, t, agent, "", 0) {
		if err != nil {
			return err
		}
		if k.Status == Active {
			active++
		}
		if all++; all >= MaxKeys {
			break
		}
	}
	switch {
	case all >= MaxKeys:
		return errTooManyKeys("The agent has 1000 keys, as many as it may ever have: make another agent")
	case active >= MaxActiveKeys:
		return errTooManyKeys("The agent has 100 active keys, as many as it may have: retire or revoke one first")
	}
	return nil
}

func errTooManyKeys(message string) error {
	return &fault.Error{Kind: fault.Conflict, Code: "key_limit", Message: message}
}
