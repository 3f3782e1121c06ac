package workflow

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/log"
)

// signingKey returns the bridge that signs for this agent, or nil if the bridge has no active key.
func (w *Workflows) signingKey(ctx context.Context, s *log.State, who id.Agent) (*agent.Bridge, error) {
	ok, err := w.agents.MayUseBridge(ctx, s, who)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errNotBridged()
	}
	return w.agents.Bridge(ctx, s)
}

// ensureBridge generates a bridge key if the bridge has no active one, because the last one was retired or revoked.
func (w *Workflows) ensureBridge(ctx context.Context, t id.Tenant, principal string) error {
	_, err := w.events.Append(ctx, t, principal,
		func(ctx context.Context, s *log.State) (act sysevent.Change, err error) {
			signer, err := w.agents.Bridge(ctx, s)
			if err != nil || signer != nil {
				return act, err
			}
			_, act, err = w.agents.MakeBridgeKey(ctx, s, principal)
			return act, err
		})
	return err
}
