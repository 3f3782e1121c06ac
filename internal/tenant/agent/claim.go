package agent

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Records of the service's own partition. A claim is written before its object, with a conditional write, and never
// removed. Readers of a claim must look up the object in the owner's partition.
const (
	// kindAgentClaim maps an agent ID to its only owner.
	kindAgentClaim storage.Kind = "agent_claim"
	// kindPublicClaim lists the owners of a public key, by publicKeyName, "/" and tenant: an agent may use one key in
	// several organizations.
	kindPublicClaim storage.Kind = "agent_public_claim"
)

type claimRecord struct {
	Tenant id.Tenant `json:"tenant"`
}

// claimAgent claims an agent ID for the tenant, which may already own it. It returns fault.Conflict if another tenant
// owns it.
func (a *Agents) claimAgent(ctx context.Context, t id.Tenant, agent id.Agent) error {
	free, err := a.claimName(ctx, t, kindAgentClaim, string(agent))
	if free || err != nil {
		return err
	}
	owner, err := a.readOwner(ctx, agent)
	if err != nil {
		return err
	}
	if owner != t {
		return errAgentTaken()
	}
	return nil
}

// readOwner returns the tenant that claimed an agent ID.
func (a *Agents) readOwner(ctx context.Context, agent id.Agent) (id.Tenant, error) {
	r, err := a.records.Get(ctx, id.Service, kindAgentClaim, string(agent))
	if isAbsent(err) {
		return 0, errNotFound()
	}
	if err != nil {
		return 0, errUnreadable("read claim", err)
	}
	var stored claimRecord
	if err := json.Unmarshal(r.Value, &stored); err != nil {
		return 0, errUnreadable("read claim", err)
	}
	return stored.Tenant, nil
}

// claimPublicKey records that the tenant is about to register a public key.
func (a *Agents) claimPublicKey(ctx context.Context, t id.Tenant, p edkey.Public) error {
	_, err := a.claimName(ctx, t, kindPublicClaim, publicClaimName(p.Bytes(), t))
	return err
}

func publicClaimName(public [32]byte, t id.Tenant) string {
	return publicKeyName(public) + "/" + strconv.FormatUint(uint64(t), 16)
}

// claimName writes a claim, unless there already is one.
func (a *Agents) claimName(ctx context.Context, t id.Tenant, kind storage.Kind, key string) (free bool, err error) {
	value, err := json.Marshal(claimRecord{Tenant: t})
	if err != nil {
		return false, fmt.Errorf("encode claim: %w", err)
	}
	err = a.records.Write(ctx, id.Service, []storage.Change{{Kind: kind, Key: key, Value: value}})
	if errors.Is(err, storage.ErrStale) {
		return false, nil
	}
	if err != nil {
		return false, errUnreadable("write claim", err)
	}
	return true, nil
}

func errAgentTaken() error { return fault.New(fault.Conflict, "agent_id is taken") }
