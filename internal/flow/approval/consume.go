package approval

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/log"
)

// Claim is an agent's proof that it may consume an approval.
type Claim struct {
	IngestKeyID string // must be the key that asked
	Action      id.Hash
	Proof       []byte // signature of an active key of the agent over ConsumeMessage
	Once        bool   // a repeated claim is refused instead of returning the same grant
}

// ConsumeMessage is the message that the proof signs:
//
//	APS1-CONSUME LF approval_id LF action_digest LF
func ConsumeMessage(name ID, action id.Hash) []byte {
	return fmt.Appendf(nil, "APS1-CONSUME\n%s\n%s\n", name, action)
}

// Consume consumes an approval, once, and returns the signed grant. The same caller gets the same grant again while the
// grant is valid, unless the claim is for once.
//
// It returns, in this order: fault.NotFound for another ingest key; fault.Invalid for an invalid proof; fault.Conflict
// for another action; fault.Gone if it has expired; fault.Conflict for another policy or state, with code quorum_lost
// if it depended on votes that no longer count, in which case it is pending again.
func (a *Approvals) Consume(ctx context.Context, t id.Tenant, name ID, claim Claim) (note string, err error) {
	may := func(ctx context.Context, s *log.State, r *record) error {
		if err := onlyAsker(claim.IngestKeyID)(ctx, s, r); err != nil {
			return err
		}
		return a.checkProof(ctx, t, name, r.Agent, claim)
	}
	err = a.changeApproval(ctx, t, claim.IngestKeyID, name, may,
		func(ctx context.Context, s *log.State, c *transaction, r *records.Versioned[record], status Status) error {
			if r.Value.ActionDigest != claim.Action {
				return refusal{errOtherAction()}
			}
			if status == Consumed && !claim.Once && a.currentTime() < r.Value.GrantEnds {
				note = r.Value.Grant
				return nil
			}
			if err := checkUsable(status); err != nil {
				return refusal{err}
			}
			if err := a.recheckQuorum(ctx, s, c, name, r); err != nil {
				return err
			}
			note, err = a.consumeApproval(ctx, s, c, name, r, "")
			return err
		})
	if err != nil {
		return "", fmt.Errorf("consume approval: %w", err)
	}
	return note, nil
}

func errOtherAction() error {
	return errConflict("The approval is for another agent, tool, payload or subject")
}

func checkUsable(status Status) error {
	switch status {
	case Approved:
		return nil
	case Expired:
		return fault.New(fault.Gone, "The approval has expired")
	case Consumed:
		return fault.New(fault.Gone, "The approval was consumed and its grant has expired")
	case Invalidated:
		return errConflict("The active policy no longer requires this approval")
	case Pending:
		return errConflict("The approval is still pending")
	}
	return errConflict("The approval is " + string(status))
}

// keyPage is the number of keys of an agent per read.
const keyPage = 64

// checkProof returns an error unless an active key of the agent made the proof.
func (a *Approvals) checkProof(ctx context.Context, t id.Tenant, name ID, who id.Agent, claim Claim) error {
	owner, err := a.agents.Agent(ctx, t, who)
	if err != nil {
		return err
	}
	if owner.Inactive {
		return agent.ErrInactive()
	}
	message, found := ConsumeMessage(name, claim.Action), false
	err = a.forEachKey(ctx, t, who, func(k *agent.Key) bool {
		found = k.Status == agent.Active && k.Public.Verify(message, claim.Proof)
		return !found
	})
	if err == nil && !found {
		err = fault.New(fault.Invalid, "proof_b64 is not the signature of an active key of the agent")
	}
	return err
}

// consumeApproval signs the grant and ends the approval. step is the event that consumes it, or "".
func (a *Approvals) consumeApproval(
	ctx context.Context, s *log.State, c *transaction, name ID, r *records.Versioned[record], step id.Event,
) (string, error) {
	if c.signer == nil {
		signer, err := a.grantKeys.Signer(ctx, s, &c.Change)
		if err != nil {
			return "", err
		}
		c.signer = &signer
	}
	now := a.currentTime()
	g := grant.Grant{
		Origin:       s.Identity().Origin,
		Approval:     string(name),
		Agent:        r.Value.Agent,
		ActionDigest: r.Value.ActionDigest,
		PolicyDigest: r.Value.PolicyDigest,
		NotBefore:    now,
		NotAfter:     now + grant.Life,
	}
	rand.Read(g.Nonce[:])
	note, err := grant.Sign(g, *c.signer)
	if err != nil {
		return "", err
	}
	r.Value.Grant, r.Value.GrantEnds = string(note), g.NotAfter
	return string(note), c.endApproval(ctx, name, r, Consumed, transition{step: step})
}
