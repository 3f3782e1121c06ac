package guard

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

// maxIntents is the maximum number of intents per call of Run. Another one is stated if the ledger
// has no decision or no approval for the previous one.
const maxIntents = 4

// errForget means that another intent must replace this one.
var errForget = errors.New("the service did not return its decision on the event")

// obtainPermit sends the intent of an action, and waits for approvers if the ledger requires it.
func (g *Guard) obtainPermit(ctx context.Context, r *preparedAction, a *action) error {
	for range maxIntents {
		if len(a.Intent) == 0 {
			if err := g.signIntent(r, a, false); err != nil {
				return g.notDecided(a, err)
			}
		}
		err := g.decideIntent(ctx, r, a)
		if err != nil {
			g.revokeBegin(a, err)
		}
		if !errors.Is(err, errForget) {
			return err
		}
		a.Intent, a.Approval = nil, nil
	}
	return g.notDecided(a, errForget)
}

// decideIntent obtains the decision on the stored intent.
func (g *Guard) decideIntent(ctx context.Context, r *preparedAction, a *action) error {
	if a.Approval != nil {
		return g.obtainGrant(ctx, a)
	}
	synced := g.beginEarly(a)
	result, err := g.sendIntent(ctx, a.Intent)
	unsynced := synced()
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
	case unsynced != nil:
		return g.notDecided(a, unsynced)
	case result.Decision == id.Allow || result.Status == client.Created:
		return nil
	}
	return errForget // a replay without a decision
}

// sendIntent sends an intent and requests its approval. An ingest key that may not request
// approvals still obtains the decision: its event was refused before it was stored.
func (g *Guard) sendIntent(ctx context.Context, intent []byte) (client.Result, error) {
	result, err := g.Client.SendIntent(ctx, intent)
	if isStatus(err, http.StatusForbidden) {
		return g.Client.Send(ctx, intent)
	}
	return result, err
}

// isStoredUnasked reports whether the intent is stored and needs an approval that could not be
// requested.
func isStoredUnasked(err error) bool {
	answer, ok := errors.AsType[*client.Error](err)
	return ok && answer.Code == "not_asked"
}

// isStatus reports whether the service, not a proxy, has answered with a status.
func isStatus(err error, status int) bool {
	answer, ok := errors.AsType[*client.Error](err)
	return ok && answer.Proved && answer.Status == status
}

func (g *Guard) notDecided(a *action, err error) error {
	return &NotDecidedError{Event: a.Permit.EventID, Err: err}
}

var errNobodyAsked = errors.New("people have to approve, and nobody could be asked")

// takeApproval stores the approval that an intent needs, if it is for this intent.
func (g *Guard) takeApproval(a *action, requested *client.Approval) error {
	if requested == nil {
		return g.notDecided(a, errNobodyAsked)
	}
	act, err := g.intentAction(a.Intent)
	if err != nil {
		return err
	}
	if requested.ActionDigest != act.Digest() {
		return g.notDecided(a, fmt.Errorf("%w: the approval is for another action", client.ErrAnswer))
	}
	a.Approval, a.Asked, a.Stage = requested, true, stageDeciding
	a.Permit.Decision, a.Permit.Approved = id.AllowWithObligation, string(act.Payload)
	if err := g.Journal.store(a, nil); err != nil {
		return g.notDecided(a, err)
	}
	a.begunEarly = false
	g.OnAsk(*requested)
	return nil
}

// maxLostQuorums is how often one call waits again for an approval that lost its quorum.
const maxLostQuorums = 8

// obtainGrant waits for an approval and consumes it. The journal stores the approval's ID, so the
// wait continues after a restart. A consumed approval returns its grant again while the grant is
// valid.
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
		case isQuorumLost(err): // pending again
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

// denyAction forgets a denied intent, so the next Run of the same action asks again. The record of
// the intent in the ledger states the denial.
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

// denyByPeople states that approvers denied the action or that the request expired, and forgets
// intent and approval.
func (g *Guard) denyByPeople(a *action, p client.Approval) error {
	denial := p.Denial(client.Decision{Decision: id.AllowWithObligation})
	denial.Event = a.Permit.EventID
	statement, err := g.signResult(a, fmt.Sprintf("denied/%d", a.Attempt), "denied")
	if err != nil {
		g.OnError(fmt.Errorf("state denial: %w", err))
	}
	return g.forgetDenied(a, statement, denial)
}

// forgetDenied forgets intent and approval, and queues the statement of the denial, if any. An
// action whose key is not reused needs no line.
func (g *Guard) forgetDenied(a *action, statement []byte, denial *client.DeniedError) error {
	if a.isForgettable() {
		return denial
	}
	a.Intent, a.Approval = nil, nil
	if err := g.Journal.store(a, statement); err != nil {
		g.OnError(fmt.Errorf("forget denied intent: %w", err))
	}
	return denial
}
