package agent

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// RetireKey retires an active key: it signs no new events, but existing signatures remain valid. It returns
// fault.NotFound for an unknown key, and fault.Conflict if the key is not active.
func (a *Agents) RetireKey(
	ctx context.Context, t id.Tenant, principal string, agent id.Agent, key id.Key,
) (Key, error) {
	return a.endKey(ctx, t, principal, agent, key, func(s *log.State, k *Key) (sysevent.Statement, error) {
		if k.Status != Active {
			return sysevent.Statement{}, fault.New(fault.Conflict, "The key is "+string(k.Status)+" already")
		}
		k.Status, k.EndedAt = Retired, a.currentTime()
		return sysevent.Statement{Kind: sysevent.KeyRetired, Payload: k.statementPayload()}, nil
	})
}

// Revocation describes why a key is no longer trusted.
type Revocation struct {
	// CompromisedFrom is the first log index whose event is not trusted, or nil. It is at most the size of the log,
	// so never after the statement.
	CompromisedFrom *id.Index
	Reason          string // may be ""
}

// RevokeKey permanently revokes an active or retired key. It returns fault.NotFound for an unknown key,
// fault.Conflict if it is already revoked, and fault.Invalid for an invalid revocation.
func (a *Agents) RevokeKey(
	ctx context.Context, t id.Tenant, principal string, agent id.Agent, key id.Key, r Revocation,
) (Key, error) {
	if err := checkReason(r.Reason); err != nil {
		return Key{}, err
	}
	return a.endKey(ctx, t, principal, agent, key, func(s *log.State, k *Key) (sysevent.Statement, error) {
		if k.Status == Revoked {
			return sysevent.Statement{}, fault.New(fault.Conflict, "The key is revoked already")
		}
		if r.CompromisedFrom != nil && *r.CompromisedFrom > s.Size() {
			return sysevent.Statement{}, fault.New(fault.Invalid,
				"compromised_from must not be after the end of the log")
		}
		k.Status, k.EndedAt = Revoked, a.currentTime()
		k.CompromisedFrom, k.Reason = r.CompromisedFrom, r.Reason
		payload := k.statementPayload()
		payload["compromised_from"], payload["reason"] = k.CompromisedFrom, k.Reason
		return sysevent.Statement{Kind: sysevent.KeyRevoked, Payload: payload}, nil
	})
}

// endKey changes the status of a key and states it.
func (a *Agents) endKey(
	ctx context.Context, t id.Tenant, principal string, agent id.Agent, key id.Key,
	change func(*log.State, *Key) (sysevent.Statement, error),
) (Key, error) {
	var k storedKey
	_, err := a.events.Append(ctx, t, principal,
		func(ctx context.Context, s *log.State) (act sysevent.Change, err error) {
			if k, err = a.readKey(ctx, t, agent, key); err != nil {
				return act, err
			}
			statement, err := change(s, &k.Key)
			if err != nil {
				return act, err
			}
			record, err := k.encodeChange()
			return sysevent.Change{Statements: []sysevent.Statement{statement}, Changes: []storage.Change{record}}, err
		})
	if err != nil {
		return Key{}, fmt.Errorf("end key: %w", err)
	}
	return k.Key, nil
}
