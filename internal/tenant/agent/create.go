package agent

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Wanted describes an agent to be made.
type Wanted struct {
	ID          id.Agent // "": made by the service
	DisplayName string   // may be empty
}

func (w *Wanted) check() error {
	if w.ID != "" {
		if err := checkAgentID(w.ID); err != nil {
			return err
		}
	}
	return checkDisplayName(w.DisplayName)
}

// CreateAgent makes an agent with its first key, whose private half is in the
// credentials and nowhere else, and states both.
//
// fault.Invalid for a malformed wish, fault.Conflict for an agent id that is
// taken, here or in another organization, and for an organization that has as many agents
// as its plan allows; fault.RateLimited for changes that come too fast.
func (a *Agents) CreateAgent(ctx context.Context, t id.Tenant, principal string, w Wanted) (Agent, Credentials, error) {
	if err := w.check(); err != nil {
		return Agent{}, Credentials{}, err
	}
	n := a.newcomer(w, principal)
	_, err := a.notary.State(ctx, t, principal, func(ctx context.Context, s *log.State) (sysevent.Act, error) {
		known, err := a.exists(ctx, t, kindAgent, string(n.agent.ID))
		if err != nil {
			return sysevent.Act{}, err
		}
		if known {
			return sysevent.Act{}, errAgentTaken()
		}
		counted, err := a.quota.Make(ctx, t, agentsOf())
		if err != nil {
			return sysevent.Act{}, err
		}
		paced, err := a.quota.Pace(ctx, t)
		if err != nil {
			return sysevent.Act{}, err
		}
		n.key.order = s.ConfigVersion()
		changes, err := a.found(ctx, t, n)
		return sysevent.Act{Statements: n.statements(), Changes: append(append(changes, counted), paced...)}, err
	})
	if err != nil {
		return Agent{}, Credentials{}, fmt.Errorf("create agent: %w", err)
	}
	return n.agent, n.credentials(), nil
}

// NewAgent makes the agent that a new organization begins with: it claims the
// names for t and returns the records that the ledger is to be created with.
// Nothing is stated, and nothing exists until those records are written.
func (a *Agents) NewAgent(ctx context.Context, t id.Tenant, principal string, w Wanted) ([]storage.Change, Credentials, error) {
	if err := w.check(); err != nil {
		return nil, Credentials{}, err
	}
	n := a.newcomer(w, principal)
	changes, err := a.found(ctx, t, n)
	if err != nil {
		return nil, Credentials{}, fmt.Errorf("new agent: %w", err)
	}
	return changes, n.credentials(), nil
}

// newcomer is an agent on its way into the store, with its key's private half.
type newcomer struct {
	agent   Agent
	key     storedKey
	private edkey.Private
}

func (a *Agents) newcomer(w Wanted, principal string) *newcomer {
	if w.ID == "" {
		w.ID = newAgentID()
	}
	private, now := edkey.NewPrivate(), a.now()
	return &newcomer{
		agent: Agent{ID: w.ID, DisplayName: w.DisplayName, CreatedAt: now, CreatedBy: principal},
		key: storedKey{Key: Key{
			Agent: w.ID, ID: newKeyID(), Public: private.Public(),
			Custody: event.CustodyServer, Status: Active, RegisteredAt: now, RegisteredBy: principal,
		}},
		private: private,
	}
}

func (n *newcomer) credentials() Credentials {
	return Credentials{Agent: n.agent.ID, Key: n.key.ID, Private: n.private}
}

func (n *newcomer) statements() []sysevent.Statement {
	return []sysevent.Statement{
		{Kind: sysevent.AgentCreated, Payload: map[string]any{"agent_id": n.agent.ID, "display_name": n.agent.DisplayName}},
		{Kind: sysevent.KeyRegistered, Payload: n.key.payload()},
	}
}

// found claims the names of a new agent and returns its records.
func (a *Agents) found(ctx context.Context, t id.Tenant, n *newcomer) ([]storage.Change, error) {
	if err := a.claimAgent(ctx, t, n.agent.ID); err != nil {
		return nil, err
	}
	agent, err := agentChange(n.agent, 0)
	if err != nil {
		return nil, err
	}
	key, err := a.foundKey(ctx, t, &n.key)
	return append(key, agent), err
}

// foundKey claims a new key's name and returns its records. Their conditions
// hold that its two names were never used in the organization.
func (a *Agents) foundKey(ctx context.Context, t id.Tenant, k *storedKey) ([]storage.Change, error) {
	if err := a.claimPublic(ctx, t, k.Public); err != nil {
		return nil, err
	}
	key, err := k.change()
	return []storage.Change{
		key,
		{Kind: kindUsed, Key: usedKey(k.ID), Value: []byte("{}")},
		{Kind: kindUsed, Key: usedPublic(k.Public.Bytes()), Value: []byte("{}")},
	}, err
}
