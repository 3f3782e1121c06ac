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

// Owner returns whose agent it is, of all organizations; fault.NotFound when there is no
// such agent. An agent is one organization's for ever, so the answer is remembered.
func (a *Agents) Owner(ctx context.Context, agent id.Agent) (id.Tenant, error) {
	if !event.ValidAgent(string(agent)) {
		return 0, errNotFound()
	}
	agent = id.Agent(strings.Clone(string(agent))) // maybe a part of a whole request
	return a.owners.Get(ctx, agent, func(ctx context.Context) (id.Tenant, error) {
		owner, err := a.readOwner(ctx, agent)
		if err != nil {
			return 0, err
		}
		return owner, a.requireAgent(ctx, owner, agent)
	})
}

// DIDKeys returns all keys of an agent of an organization in the order of their
// registration. The keys are as they are stored: log.State.Trusted of the organization's
// ledger tells whether that still holds.
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

// toPublicKey returns the key as DID documents need it.
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

// KeyHolders yields the organizations in which a public key was ever registered. An
// error is the last that it yields.
func (a *Agents) KeyHolders(ctx context.Context, public [32]byte) iter.Seq2[id.Tenant, error] {
	return func(yield func(id.Tenant, error) bool) {
		claims := records.Range{Begin: publicKeyName(public) + "/", End: publicKeyName(public) + "0"} // "0" follows "/"
		for claim, err := range records.Scan(ctx, a.records, id.Service, kindPublicClaim, claims, 0) {
			if err != nil {
				yield(0, errUnreadable("look up public key", err))
				return
			}
			holder, kept, err := a.isKept(ctx, claim, public)
			if (kept || err != nil) && !yield(holder, err) || err != nil {
				return
			}
		}
	}
}

// isKept returns the holder of a public key, and whether its registration was completed.
func (a *Agents) isKept(
	ctx context.Context, claim storage.Record, public [32]byte,
) (holder id.Tenant, kept bool, err error) {
	var stored claimRecord
	if err := json.Unmarshal(claim.Value, &stored); err != nil {
		return 0, false, errUnreadable("look up public key", err)
	}
	kept, err = a.recordExists(ctx, stored.Tenant, kindUsed, usedPublicRecord(public))
	return stored.Tenant, kept, err
}
