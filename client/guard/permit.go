package guard

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

// maxIntents is how often one call of Run states an intent, where the ledger has no decision or no
// approval for the one before.
const maxIntents = 4

// errForget says that another intent has to be stated in place of this one.
var errForget = errors.New("the service does not tell its decision on the event")

// obtainPermit sends the intent of an action, and waits for people where the ledger demands it.
func (g *Guard) obtainPermit(ctx context.Context, r *preparedAction, a *action) error {
	for range maxIntents {
		if len(a.Intent) == 0 {
			if err := g.signIntent(r, a, false); err != nil {
				return g.notDecided(a, err)
			}
		}
		err := g.decideIntent(ctx, r, a)
		if err != nil {
			g.takeBegunBack(a, err)
		}
		if !errors.Is(err, errForget) {
			return err
		}
		a.Intent, a.Approval = nil, nil
	}
	return g.notDecided(a, errForget)
}

// decideIntent gets the decision on the stored intent.
func (g *Guard) decideIntent(ctx context.Context, r *preparedAction, a *action) error {
	if a.Approval != nil {
		return g.obtainGrant(ctx, a)
	}
	written := g.beginEarly(a)
	result, err := g.sendIntent(ctx, a.Intent)
	unwritten := written()
	switch {
	case isStatus(err, http.StatusConflict):
		return errForget
	case g.FailOpen && client.IsUnreachable(err) && !isStoredUnasked(err):
		if err := g.signIntent(r, a, true); err != nil {
			return g.notDecided(a, err)
		}
		return nil
	case err != nil:
		return g.notDecided(a, err)
	}
	switch {
	case result.Decision == id.Deny:
		return g.denyAction(a, result)
	case result.Decision == id.AllowWithObligation:
		if err := g.takeApproval(a, result.Approval); err != nil {
			return err
		}
		return g.obtainGrant(ctx, a)
	case unwritten != nil:
		return g.notDecided(a, unwritten)
	case result.Decision == id.Allow || result.Status == client.Created:
		return nil
	}
	return errForget // a replay of which the service does not tell the decision
}

// sendIntent sends an intent and asks for its approval. A key that may not ask for approvals still learns
// the decision: its event was refused before it was stored.
func (g *Guard) sendIntent(ctx context.Context, intent []byte) (client.Result, error) {
	result, err := g.Client.SendIntent(ctx, intent)
	if isStatus(err, http.StatusForbidden) {
		return g.Client.Send(ctx, intent)
	}
	return result, err
}

// isStoredUnasked reports whether the intent is stored and needs an approval that could not be asked for.
func isStoredUnasked(err error) bool {
	answer, ok := errors.AsType[*client.Error](err)
	return ok && answer.Code == "not_asked"
}

func isStatus(err error, status int) bool {
	answer, ok := errors.AsType[*client.Error](err)
	return ok && answer.Status == status
}

func (g *Guard) notDecided(a *action, err error) error {
	return &NotDecidedError{Event: a.Permit.EventID, Err: err}
}

var errNobodyAsked = errors.New("people have to approve, and nobody could be asked")

// takeApproval keeps the approval that an intent needs, if it is for this intent.
func (g *Guard) takeApproval(a *action, asked *client.Approval) error {
	if asked == nil {
		return g.notDecided(a, errNobodyAsked)
	}
	act, err := g.intentAction(a.Intent)
	if err != nil {
		return err
	}
	if asked.ActionDigest != act.Digest() {
		return g.notDecided(a, fmt.Errorf("%w: the approval is for another action", client.ErrAnswer))
	}
	a.Approval, a.Asked, a.Stage = asked, true, stageDeciding
	a.Permit.Decision, a.Permit.Approved = id.AllowWithObligation, string(act.Payload)
	if err := g.Journal.store(a, nil); err != nil {
		return g.notDecided(a, err)
	}
	a.begunEarly = false
	g.OnAsk(*asked)
	return nil
}

// maxLostQuorums is how often one call waits again for an approval whose quorum was lost.
const maxLostQuorums = 8

// obtainGrant waits for an approval and consumes it. The journal keeps the approval's id, so the
// wait continues after a restart. A consumed approval gives its grant again while the grant is valid.
func (g *Guard) obtainGrant(ctx context.Context, a *action) error {
	for range maxLostQuorums {
		p, err := g.Client.AwaitApproval(ctx, a.Approval.ID)
		switch {
		case err != nil && ctx.Err() != nil:
			return &ApprovalRequiredError{Event: a.Permit.EventID, Approval: *a.Approval, Err: err}
		case err != nil:
			return g.notDecided(a, err)
		case p.Status != client.ApprovalApproved && p.Status != client.ApprovalConsumed:
			return g.denyByPeople(a, p)
		}
		a.Permit.Grant, err = g.Client.ConsumeApproval(ctx, g.Signer, *a.Approval)
		switch {
		case err == nil:
			return nil
		case isQuorumLost(err): // it is pending again
		case isStatus(err, http.StatusGone), isStatus(err, http.StatusConflict):
			return errForget
		default:
			return g.notDecided(a, err)
		}
	}
	return g.notDecided(a, errors.New("the approval lost its quorum again and again"))
}

func isQuorumLost(err error) bool {
	answer, ok := errors.AsType[*client.Error](err)
	return ok && answer.Code == "quorum_lost"
}

// denyAction forgets a denied intent, so the next Run of the same action asks again. The ledger has
// the denial in the record of the intent.
func (g *Guard) denyAction(a *action, result client.Result) error {
	reason := result.Reason
	if reason == "" {
		reason = fmt.Sprintf("the ledger says %s by rule %s of policy %s",
			result.Decision, result.RuleID, result.PolicyID)
	}
	decision := client.Decision{
		Decision: result.Decision, PolicyID: result.PolicyID, RuleID: result.RuleID, Reason: result.Reason,
	}
	return g.forgetDenied(a, nil, &client.DeniedError{Reason: reason, Event: a.Permit.EventID, Decision: decision})
}

// denyByPeople states that people denied the action, or that time did, and forgets intent and approval.
func (g *Guard) denyByPeople(a *action, p client.Approval) error {
	denial := p.Denial(client.Decision{Decision: id.AllowWithObligation})
	denial.Event = a.Permit.EventID
	statement, err := g.signResult(a, fmt.Sprintf("denied/%d", a.Attempt), "denied")
	if err != nil {
		g.OnTrouble(fmt.Errorf("state denial: %w", err))
	}
	return g.forgetDenied(a, statement, denial)
}

// forgetDenied forgets intent and approval, and queues the statement of the denial, nil for none. An
// action whose key is not used again needs no line.
func (g *Guard) forgetDenied(a *action, statement []byte, denial *client.DeniedError) error {
	if a.isForgettable() {
		return denial
	}
	a.Intent, a.Approval = nil, nil
	if err := g.Journal.store(a, statement); err != nil {
		g.OnTrouble(fmt.Errorf("forget denied intent: %w", err))
	}
	return denial
}
