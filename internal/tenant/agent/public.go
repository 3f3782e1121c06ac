package agent

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// scanPage is how many records are read at once where all are wanted.
const scanPage = 256

// Owner returns whose agent it is, of all organizations; fault.NotFound when there is no
// such agent. An agent is one organization's for ever, so the answer is remembered.
func (a *Agents) Owner(ctx context.Context, agent id.Agent) (id.Tenant, error) {
	if !event.ValidAgent(string(agent)) {
		return 0, errNotFound()
	}
	agent = id.Agent(strings.Clone(string(agent))) // maybe a part of a whole request
	return a.owners.Get(ctx, agent, func(ctx context.Context) (id.Tenant, error) {
		owner, err := a.owner(ctx, agent)
		if err != nil {
			return 0, err
		}
		return owner, a.mustHave(ctx, owner, agent)
	})
}

// DIDKeys returns all keys of an agent of an organization in the order of their
// registration. The keys are as they are stored: log.State.Trusted of the organization's
// ledger tells whether that is what holds.
func (a *Agents) DIDKeys(ctx context.Context, t id.Tenant, agent id.Agent) ([]did.Key, error) {
	all, err := a.allKeys(ctx, t, agent)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(x, y storedKey) int { return cmp.Compare(x.order, y.order) })
	keys := make([]did.Key, len(all))
	for i := range all {
		keys[i] = all[i].public()
	}
	return keys, nil
}

func (a *Agents) allKeys(ctx context.Context, t id.Tenant, agent id.Agent) ([]storedKey, error) {
	var all []storedKey
	var after id.Key
	for {
		page, err := a.scanKeys(ctx, t, agent, after, scanPage)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < scanPage {
			return all, nil
		}
		after = page[len(page)-1].ID
	}
}

// public returns the key as DID documents need it.
func (k *storedKey) public() did.Key {
	p := did.Key{Public: k.Public.Bytes(), KeyID: k.ID, State: did.Revoked, Ended: k.EndedAt}
	switch k.Status {
	case Active:
		p.State = did.Active
	case Retired:
		p.State = did.Retired
	}
	return p
}

// KeyHolders yields the organizations in which a public key was ever registered. An
// error is the last that it yields.
func (a *Agents) KeyHolders(ctx context.Context, public [32]byte) iter.Seq2[id.Tenant, error] {
	return func(yield func(id.Tenant, error) bool) {
		name := publicName(public)
		begin, end := name+"/", name+"0"
		for {
			claims, err := a.records.Scan(ctx, id.Service, kindPublicClaim, begin, end, scanPage)
			if err != nil {
				yield(0, unreadable("look up public key", err))
				return
			}
			for _, c := range claims {
				holder, kept, err := a.kept(ctx, c, public)
				if (kept || err != nil) && !yield(holder, err) || err != nil {
					return
				}
			}
			if len(claims) < scanPage {
				return
			}
			begin = successor(claims[len(claims)-1].Key)
		}
	}
}

// kept returns who claimed a public key, and whether its registration came of it.
func (a *Agents) kept(ctx context.Context, claim storage.Record, public [32]byte) (holder id.Tenant, kept bool, err error) {
	var stored claimRecord
	if err := json.Unmarshal(claim.Value, &stored); err != nil {
		return 0, false, unreadable("look up public key", err)
	}
	kept, err = a.exists(ctx, stored.Tenant, kindUsed, usedPublic(public))
	return stored.Tenant, kept, err
}
