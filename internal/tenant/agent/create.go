package agent

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/did"
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

func (w *Wanted) checkMembers() error {
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
	if err := w.checkMembers(); err != nil {
		return Agent{}, Credentials{}, err
	}
	n := a.prepareAgent(w, principal)
	if err := a.appendAgent(ctx, t, principal, n, nil); err != nil {
		return Agent{}, Credentials{}, err
	}
	return n.agent, n.showCredentials(), nil
}

// CreateAgentWithKey makes an agent whose first key is a public key that the client brings, and
// states both. The proof is that of ProofMessage, with an empty agent_id line where the service
// makes the agent id. Errors are those of CreateAgent and RegisterKey.
func (a *Agents) CreateAgentWithKey(
	ctx context.Context, t id.Tenant, principal string, w Wanted, r Registration,
) (Agent, Key, error) {
	if err := w.checkMembers(); err != nil {
		return Agent{}, Key{}, err
	}
	public, proof, err := r.parseMembers()
	if err != nil {
		return Agent{}, Key{}, err
	}
	n := a.prepareAgent(w, principal)
	n.private = edkey.Private{}
	n.key.Public, n.key.Multikey, n.key.Custody = public, did.Multikey(public.Bytes()), event.CustodyAgent
	if r.KeyID != "" {
		n.key.ID = r.KeyID
	}
	err = a.appendAgent(ctx, t, principal, n, func(ctx context.Context, s *log.State) error {
		if !public.Verify(ProofMessage(s.Identity().Organization, w.ID, r.KeyID, public), proof) {
			return errNoPossession()
		}
		return a.checkUnused(ctx, t, &n.key.Key)
	})
	if err != nil {
		return Agent{}, Key{}, err
	}
	return n.agent, n.key.Key, nil
}

// appendAgent writes and states a new agent with its key. check may refuse the key; nil: it was
// made here.
func (a *Agents) appendAgent(
	ctx context.Context, t id.Tenant, principal string, n *newcomer,
	check func(ctx context.Context, s *log.State) error,
) error {
	_, err := a.events.Append(ctx, t, principal, func(ctx context.Context, s *log.State) (sysevent.Change, error) {
		known, err := a.recordExists(ctx, t, kindAgent, string(n.agent.ID))
		if err != nil {
			return sysevent.Change{}, err
		}
		if known {
			return sysevent.Change{}, errAgentTaken()
		}
		if check != nil {
			if err := check(ctx, s); err != nil {
				return sysevent.Change{}, err
			}
		}
		counted, err := a.quota.Make(ctx, t, agentResource())
		if err != nil {
			return sysevent.Change{}, err
		}
		paced, err := a.quota.CountStatement(ctx, t)
		if err != nil {
			return sysevent.Change{}, err
		}
		n.key.order = s.ConfigVersion()
		changes, err := a.foundAgent(ctx, t, n)
		return sysevent.Change{Statements: n.makeStatements(), Changes: append(append(changes, counted), paced...)}, err
	})
	if err != nil {
		return fmt.Errorf("create agent: %w", err)
	}
	return nil
}

// NewAgent makes the agent that a new organization begins with: it claims the
// names for t and returns the records that the ledger is to be created with.
// Nothing is stated, and nothing exists until those records are written.
func (a *Agents) NewAgent(
	ctx context.Context, t id.Tenant, principal string, w Wanted,
) ([]storage.Change, Credentials, error) {
	if err := w.checkMembers(); err != nil {
		return nil, Credentials{}, err
	}
	n := a.prepareAgent(w, principal)
	changes, err := a.foundAgent(ctx, t, n)
	if err != nil {
		return nil, Credentials{}, fmt.Errorf("new agent: %w", err)
	}
	return changes, n.showCredentials(), nil
}

// newcomer is an agent on its way into the store, with its key's private half.
type newcomer struct {
	agent   Agent
	key     storedKey
	private edkey.Private
}

func (a *Agents) prepareAgent(w Wanted, principal string) *newcomer {
	if w.ID == "" {
		w.ID = newAgentID()
	}
	private, now := edkey.NewPrivate(), a.currentTime()
	return &newcomer{
		agent: Agent{ID: w.ID, DisplayName: w.DisplayName, CreatedAt: now, CreatedBy: principal},
		key: storedKey{Key: Key{
			Agent: w.ID, ID: newKeyID(), Public: private.Public(),
			Custody: event.CustodyServer, Status: Active, RegisteredAt: now, RegisteredBy: principal,
		}},
		private: private,
	}
}

func (n *newcomer) showCredentials() Credentials {
	return Credentials{Agent: n.agent.ID, Key: n.key.ID, Private: n.private}
}

func (n *newcomer) makeStatements() []sysevent.Statement {
	return []sysevent.Statement{
		{
			Kind:    sysevent.AgentCreated,
			Payload: map[string]any{"agent_id": n.agent.ID, "display_name": n.agent.DisplayName},
		},
		{Kind: sysevent.KeyRegistered, Payload: n.key.statementPayload()},
	}
}

// foundAgent claims the names of a new agent and returns its records.
func (a *Agents) foundAgent(ctx context.Context, t id.Tenant, n *newcomer) ([]storage.Change, error) {
	if err := a.claimAgent(ctx, t, n.agent.ID); err != nil {
		return nil, err
	}
	agent, err := encodeAgent(n.agent, 0)
	if err != nil {
		return nil, err
	}
	key, err := a.makeKeyChanges(ctx, t, &n.key)
	return append(key, agent), err
}

// makeKeyChanges claims a new key's name and returns its records. Their conditions
// hold that its two names were never used in the organization.
func (a *Agents) makeKeyChanges(ctx context.Context, t id.Tenant, k *storedKey) ([]storage.Change, error) {
	if err := a.claimPublicKey(ctx, t, k.Public); err != nil {
		return nil, err
	}
	key, err := k.encodeChange()
	return []storage.Change{
		key,
		{Kind: kindUsed, Key: usedKeyRecord(k.ID), Value: []byte("{}")},
		{Kind: kindUsed, Key: usedPublicRecord(k.Public.Bytes()), Value: []byte("{}")},
	}, err
}
