package approval

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
)

// Use is a step of a keyless tool that consumes an approval. The event of the step, which the bridge key signs,
// replaces the agent's proof.
type Use struct {
	Approval ID
	Step     id.Event
	Action   grant.Action
}

// Uses collects the uses of one ingest key under one state of a ledger. They are committed in the append of their
// steps, or not at all.
type Uses struct {
	owner     *Approvals
	state     *log.State
	ingestKey string
	c         *transaction
}

// BeginUses returns an empty list of uses.
func (a *Approvals) BeginUses(s *log.State, ingestKey string) *Uses {
	return &Uses{owner: a, state: s, ingestKey: ingestKey, c: a.beginChange(s.Identity().Tenant)}
}

// Consume adds a use and returns the signed grant. An approval may be added once.
//
// It returns, in this order: fault.NotFound for an approval of another ingest key; fault.Conflict for another action;
// fault.Gone if it has expired or was consumed; fault.Conflict for another policy or state, with code quorum_lost if it
// depended on votes that no longer count. A refusal changes nothing: see SettleOwn.
func (u *Uses) Consume(ctx context.Context, use Use) (note string, err error) {
	r, err := u.owner.readApproval(ctx, u.c.tenant, use.Approval)
	if fault.Is(err, fault.NotFound) || err == nil && r.Value.IngestKeyID != u.ingestKey {
		return "", fault.New(fault.NotFound, "approval_id is not an approval that this ingest key requested")
	}
	if err != nil {
		return "", err
	}
	if r.Value.ActionDigest != use.Action.Digest() {
		return "", errOtherAction()
	}
	if err := u.checkUsable(ctx, use.Approval, &r.Value); err != nil {
		return "", err
	}
	note, err = u.owner.consumeApproval(ctx, u.state, u.c, use.Approval, &r, use.Step)
	if err != nil {
		return "", fmt.Errorf("consume approval: %w", err)
	}
	return note, nil
}

func (u *Uses) checkUsable(ctx context.Context, name ID, r *record) error {
	j, err := u.owner.newJudge(ctx, u.state)
	if err != nil {
		return err
	}
	status, err := j.findStatus(ctx, name, r)
	if err != nil {
		return err
	}
	if status == Consumed {
		return fault.New(fault.Gone, "The approval was already consumed")
	}
	if err := checkUsable(status); err != nil {
		return err
	}
	counted, err := u.owner.validVotes(ctx, u.state, r)
	if err == nil && countAgreements(counted) < r.Quorum {
		err = errQuorumLost()
	}
	return err
}

// Build returns the statements and records of all uses. They must be committed in the append of the steps.
func (u *Uses) Build(ctx context.Context) (sysevent.Change, error) {
	return u.c.buildChange(ctx, u.state)
}

// Landed wakes the callers that wait for the approvals. It must be called when the append is durable.
func (u *Uses) Landed() {
	for _, name := range u.c.touched {
		u.owner.hub.Notify(name)
	}
}

// SettleOwn records that an approval of the ingest key has expired, became invalid or has lost its quorum, if that is
// the case and not recorded yet.
func (a *Approvals) SettleOwn(ctx context.Context, t id.Tenant, ingestKey string, name ID) error {
	return a.changeApproval(ctx, t, ingestKey, name, onlyAsker(ingestKey),
		func(ctx context.Context, s *log.State, c *transaction, r *records.Versioned[record], status Status) error {
			if status != Approved {
				return nil
			}
			return a.recheckQuorum(ctx, s, c, name, r)
		})
}

// LiveGrant returns the grant of a consumed approval, or "" if the grant has expired.
func (a *Approvals) LiveGrant(ctx context.Context, t id.Tenant, name ID) (note string, err error) {
	r, err := a.readApproval(ctx, t, name)
	if err == nil && r.Value.Status == Consumed && a.currentTime() < r.Value.GrantEnds {
		note = r.Value.Grant
	}
	return note, err
}
