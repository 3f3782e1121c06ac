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
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// Owner returns the organization of an agent, of all organizations. It returns fault.NotFound if there is no such
// agent. An agent belongs permanently to one organization, so the result is cached.
func (a *Agents) Owner(ctx context.Context, agent id.Agent) (id.Tenant, error) {
	if !event.ValidAgent(string(agent)) {
		return 0, errNotFound()
	}
	agent = id.Agent(strings.Clone(string(agent))) // it may be part of a large request
	return a.owners.Get(ctx, agent, func(ctx context.Context) (id.Tenant, error) {
		owner, err := a.readOwner(ctx, agent)
		if err != nil {
			return 0, err
		}
		return owner, a.requireAgent(ctx, owner, agent)
	})
}

// DIDKeys returns all keys of an agent in the order of their registration. It returns the stored keys;
// log.State.Trusted of the organization's ledger reports whether they can be trusted.
func (a *Agents) DIDKeys(ctx context.Context, t id.Tenant, agent id.Agent) ([]did.Key, error) {
	var all []storedKey
	for k, err := range a.readKeysAfter(ctx, t, agent, "", 0) {
		if err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	slices.SortStableFunc(all, func(x, y storedKey) int { return cmp.Compare(x.order, y.order) })
	keys := make([]did.Key, len(all))
	for i := range all {
		keys[i] = all[i].toPublicKey()
	}
	return keys, nil
}

// toPublicKey returns the key for a DID document.
func (k *storedKey) toPublicKey() did.Key {
	p := did.Key{Public: k.Public.Bytes(), KeyID: k.ID, State: did.Revoked, Ended: k.EndedAt}
	switch k.Status {
	case Active:
		p.State = did.Active
	case Retired:
		p.State = did.Retired
	}
	return p
}

// KeyHolders yields the organizations in which a public key was ever registered. It stops after yielding an error.
func (a *Agents) KeyHolders(ctx context.Context, public [32]byte) iter.Seq2[id.Tenant, error] {
	return func(yield func(id.Tenant, error) bool) {
		claims := records.Range{Begin: publicKeyName(public) + "/", End: publicKeyName(public) + "0"} // "0" follows "/"
		for claim, err := range records.Scan(ctx, a.records, id.Service, kindPublicClaim, claims, 0) {
			if err != nil {
				yield(0, errUnreadable("look up public key", err))
				return
			}
			holder, registered, err := a.isRegistered(ctx, claim, public)
			if (registered || err != nil) && !yield(holder, err) || err != nil {
				return
			}
		}
	}
}

// isRegistered returns the holder of a public key, and reports whether its registration was completed.
func (a *Agents) isRegistered(
	ctx context.Context, claim storage.Record, public [32]byte,
) (holder id.Tenant, registered bool, err error) {
	var stored claimRecord
	if err := json.Unmarshal(claim.Value, &stored); err != nil {
		return 0, false, errUnreadable("look up public key", err)
	}
	registered, err = a.recordExists(ctx, stored.Tenant, kindUsed, usedPublicRecord(public))
	return stored.Tenant, registered, err
}
