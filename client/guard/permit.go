package guard

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

// maxStatements is how often a decision is stated when the answers are lost.
const maxStatements = 4

// obtainPermit gets the decision on an action and states it in the ledger. Only the
// answer to a new event carries the decision that the ledger holds. Another event is
// therefore sent after a lost answer, also when it was lost before a restart.
func (g *Guard) obtainPermit(ctx context.Context, r *preparedAction, a *action) error {
	for range maxStatements {
		if err := g.decideAction(ctx, r, a); err != nil {
			return err
		}
		a.Attempt++
		// The attempt is stored before its event is sent, so no two events are the same.
		if err := g.Journal.storeAction(a); err != nil {
			return err
		}
		envelope, err := g.stateDecision(r, a)
		if err != nil {
			return err
		}
		result, err := g.Client.Send(ctx, envelope)
		switch {
		case err == nil && result.Status == client.Created:
			return checkTightened(a, result)
		case err == nil:
			continue
		case g.FailOpen && client.IsUnreachable(err) && a.Permit.Decision == id.Allow:
			a.Permit.Unasked = true
			return g.Journal.queue.enqueueEvent(envelope, false)
		}
		return fmt.Errorf("state the decision: %w", err)
	}
	return errors.New("state the decision: the answers are lost")
}

// decideAction asks the policy, and people when the policy demands approval.
func (g *Guard) decideAction(ctx context.Context, r *preparedAction, a *action) error {
	who := g.Signer.Identity()
	d, err := g.Client.Evaluate(ctx, client.Question{
		Organization: who.Organization, Agent: who.Agent, Tool: r.Tool, Payload: r.payload,
	})
	if err != nil {
		if g.FailOpen && client.IsUnreachable(err) && a.Approval == nil {
			a.Permit = Permit{Decision: id.Allow, Unasked: true}
			return nil
		}
		return err
	}
	a.Permit = Permit{Decision: d.Decision}
	switch d.Decision {
	case id.Allow:
		return nil
	case id.AllowWithObligation:
		return g.obtainGrant(ctx, r, a, d)
	}
	return g.denyAction(r, a, &client.DeniedError{Reason: d.Reason, Decision: d})
}

// obtainGrant gets the grant of an approval. The journal keeps the approval's id, so the
// wait continues after a restart. A consumed approval gives its grant again while the
// grant is valid.
func (g *Guard) obtainGrant(ctx context.Context, r *preparedAction, a *action, d client.Decision) error {
	for range 2 { // the approval in the journal may have ended
		if a.Approval == nil {
			if err := g.requestApproval(ctx, r, a); err != nil {
				return err
			}
		}
		p, err := g.Client.AwaitApproval(ctx, a.Approval.ID)
		if err != nil {
			return err
		}
		if p.Status != client.ApprovalApproved && p.Status != client.ApprovalConsumed {
			return g.denyAction(r, a, p.Denial(d))
		}
		a.Permit.Grant, err = g.Client.ConsumeApproval(ctx, g.Signer, *a.Approval)
		if err == nil {
			return nil
		}
		if !isApprovalOver(err) {
			return err
		}
		a.Approval = nil
	}
	return errors.New("the approval was over before it could be used")
}

func isApprovalOver(err error) bool {
	answer, ok := errors.AsType[*client.Error](err)
	return ok && (answer.Status == http.StatusGone || answer.Status == http.StatusConflict)
}

func (g *Guard) requestApproval(ctx context.Context, r *preparedAction, a *action) error {
	who := g.Signer.Identity()
	asked, err := g.Client.AskApproval(ctx, client.ApprovalQuestion{
		Organization: who.Organization, Agent: who.Agent, Tool: r.Tool, Payload: r.payload, Trace: r.Trace,
		Principal: r.Principal,
	})
	if err != nil {
		return err
	}
	a.Approval = &asked
	if err := g.Journal.storeAction(a); err != nil {
		return err
	}
	g.OnAsk(asked)
	return nil
}

// denyAction states a denial and forgets the approval, so the next Run of the same action
// asks again.
func (g *Guard) denyAction(r *preparedAction, a *action, denial *client.DeniedError) error {
	a.Permit.Decision, a.Approval = id.Deny, nil
	a.Attempt++
	err := g.Journal.storeAction(a)
	var envelope []byte
	if err == nil {
		envelope, err = g.stateDecision(r, a)
	}
	if err == nil {
		err = g.Journal.queue.enqueueEvent(envelope, false)
	}
	if err != nil {
		g.OnTrouble(fmt.Errorf("state denial: %w", err))
	}
	return denial
}

// checkTightened returns a denial when the ledger's decision is stricter than the stated
// one.
func checkTightened(a *action, result client.Result) error {
	if result.Decision <= a.Permit.Decision {
		return nil
	}
	a.Approval = nil
	return &client.DeniedError{
		Reason: fmt.Sprintf("the ledger says %s by rule %s of policy %s",
			result.Decision, result.RuleID, result.PolicyID),
	}
}
