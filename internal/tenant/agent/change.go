package agent

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Patch is a change of an agent. Nil members remain unchanged.
type Patch struct {
	DisplayName *string
	Bridge      *bool // the workflow bridge may act for the agent
	Active      *bool // the agent may sign events, request evaluations and run workflows
}

// applyTo changes a and returns the payload of the statement about the change.
func (p Patch) applyTo(a *Agent) map[string]any {
	payload := map[string]any{"agent_id": a.ID}
	if p.DisplayName != nil && *p.DisplayName != a.DisplayName {
		a.DisplayName, payload["display_name"] = *p.DisplayName, *p.DisplayName
	}
	if p.Bridge != nil && *p.Bridge != a.Bridge {
		a.Bridge, payload["bridge"] = *p.Bridge, *p.Bridge
	}
	if p.Active != nil && *p.Active == a.Inactive {
		a.Inactive, payload["active"] = !*p.Active, *p.Active
	}
	return payload
}

// onlyDeactivates reports whether a statement only deactivates the agent. Like every change that removes rights, it
// is not rate limited.
func onlyDeactivates(payload map[string]any) bool {
	return len(payload) == 2 && payload["active"] == false
}

// Change changes an agent and states the change (ledger_agent_changed). It does not state a member that already has
// the requested value. It returns fault.Invalid for an invalid value, fault.NotFound if the organization does not
// have the agent, and fault.RateLimited if changes come too fast.
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
			payload := p.applyTo(&changed)
			if len(payload) == 1 {
				return act, nil
			}
			var paced []storage.Change
			if !onlyDeactivates(payload) {
				if paced, err = a.quota.CountStatement(ctx, t); err != nil {
					return act, err
				}
			}
			change, err := encodeAgent(changed, version)
			return sysevent.Change{
				Statements: []sysevent.Statement{{Kind: sysevent.AgentChanged, Payload: payload}},
				Changes:    append(paced, change),
			}, err
		})
	if err != nil {
		return Agent{}, fmt.Errorf("change agent: %w", err)
	}
	return changed, nil
}
