package agent

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Patch is a change of an agent; nil members stay as they are.
type Patch struct {
	DisplayName *string
	Bridge      *bool // whether the workflow bridge may act for the agent
	Active      *bool // whether the agent may sign, ask and run
}

// applyTo changes a and returns the payload of the statement about it.
func (p Patch) applyTo(a *Agent) map[string]any {
	said := map[string]any{"agent_id": a.ID}
	if p.DisplayName != nil && *p.DisplayName != a.DisplayName {
		a.DisplayName, said["display_name"] = *p.DisplayName, *p.DisplayName
	}
	if p.Bridge != nil && *p.Bridge != a.Bridge {
		a.Bridge, said["bridge"] = *p.Bridge, *p.Bridge
	}
	if p.Active != nil && *p.Active == a.Inactive {
		a.Inactive, said["active"] = !*p.Active, *p.Active
	}
	return said
}

// onlySwitchesOff reports whether a statement is that an agent is switched off, and no more. Like
// each change that takes rights away it has no pace.
func onlySwitchesOff(said map[string]any) bool { return len(said) == 2 && said["active"] == false }

// Change changes an agent and states it (ledger_agent_changed). A member that is as wished
// already is not stated again. fault.Invalid; fault.NotFound for an agent that the
// organization does not have; fault.RateLimited for changes that come too fast.
func (a *Agents) Change(ctx context.Context, t id.Tenant, principal string, agent id.Agent, p Patch) (Agent, error) {
	if p.DisplayName != nil {
		if err := checkDisplayName(*p.DisplayName); err != nil {
			return Agent{}, err
		}
	}
	var changed Agent
	_, err := a.events.Append(ctx, t, principal,
		func(ctx context.Context, _ *log.State) (act sysevent.Change, err error) {
			var version uint64
			if changed, version, err = a.readAgent(ctx, t, agent); err != nil {
				return act, err
			}
			said := p.applyTo(&changed)
			if len(said) == 1 {
				return act, nil
			}
			var paced []storage.Change
			if !onlySwitchesOff(said) {
				if paced, err = a.quota.CountStatement(ctx, t); err != nil {
					return act, err
				}
			}
			change, err := encodeAgent(changed, version)
			return sysevent.Change{
				Statements: []sysevent.Statement{{Kind: sysevent.AgentChanged, Payload: said}},
				Changes:    append(paced, change),
			}, err
		})
	if err != nil {
		return Agent{}, fmt.Errorf("change agent: %w", err)
	}
	return changed, nil
}
