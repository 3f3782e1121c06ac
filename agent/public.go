package agent

import (
	"cmp"
	"context"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// scanPage is how many records are read at once where all are wanted.
const scanPage = 256

// DIDKeys returns all keys of an agent of whatever organization, in the order
// of their registration. fault.NotFound when there is no such agent.
func (a *Agents) DIDKeys(ctx context.Context, agent id.Agent) ([]did.Key, error) {
	if !event.ValidAgent(string(agent)) {
		return nil, errNotFound()
	}
	t, err := a.owner(ctx, agent)
	if err != nil {
		return nil, err
	}
	if err := a.mustHave(ctx, t, agent); err != nil {
		return nil, err
	}
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

// KeyKnown reports whether a public key was ever registered for an agent of any
// organization.
func (a *Agents) KeyKnown(ctx context.Context, public [32]byte) (bool, error) {
	name := publicName(public)
	begin, end := name+"/", name+"0"
	for {
		claims, err := a.records.Scan(ctx, id.Service, kindPublicClaim, begin, end, scanPage)
		if err != nil {
			return false, unreadable("look up public key", err)
		}
		for _, c := range claims {
			if known, err := a.kept(ctx, c, public); known || err != nil {
				return known, err
			}
		}
		if len(claims) < scanPage {
			return false, nil
		}
		begin = successor(claims[len(claims)-1].Key)
	}
}

// kept reports whether a claim on a public key led to its registration.
func (a *Agents) kept(ctx context.Context, claim storage.Record, public [32]byte) (bool, error) {
	var stored claimRecord
	if err := json.Unmarshal(claim.Value, &stored); err != nil {
		return false, unreadable("look up public key", err)
	}
	return a.exists(ctx, stored.Tenant, kindUsed, usedPublic(public))
}
