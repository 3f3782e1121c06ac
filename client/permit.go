package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/agentledger/agentledger/id"
)

// statements is how often a decision is stated anew when the answer to one was lost.
const statements = 4

// permit gets an action allowed, and that into the ledger. Only the answer to a new
// event says under which decision it is there, so where that answer was lost, also
// in a life before, another one is sent.
func (g *Guard) permit(ctx context.Context, r *running, a *action) error {
	for range statements {
		if err := g.decide(ctx, r, a); err != nil {
			return err
		}
		a.Attempt++
		if err := g.Journal.write(a); err != nil { // before it is sent: no two are the same
			return err
		}
		envelope, err := g.statement(r, a)
		if err != nil {
			return err
		}
		result, err := g.Client.Send(ctx, envelope)
		switch {
		case err == nil && result.Status == Created:
			return g.tightened(a, result)
		case err == nil:
			continue
		case g.FailOpen && unreachable(err) && a.Permit.Decision == id.Allow:
			a.Permit.Unasked = true
			return g.Journal.push(envelope, false)
		}
		return fmt.Errorf("state the decision: %w", err)
	}
	return errors.New("state the decision: the answers are lost")
}

// decide asks the policy, and people where it says so.
func (g *Guard) decide(ctx context.Context, r *running, a *action) error {
	who := g.Signer.Identity()
	d, err := g.Client.Evaluate(ctx, Question{Organization: who.Organization, Agent: who.Agent, Tool: r.Tool, Payload: r.payload})
	if err != nil {
		if g.FailOpen && unreachable(err) && a.Approval == nil {
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
		return g.ask(ctx, r, a, d)
	}
	return g.denied(r, a, &DeniedError{Reason: d.Reason, Decision: d})
}

// unreachable reports whether a call failed without an answer of the service that
// means something.
func unreachable(err error) bool {
	var answer *Error
	if errors.As(err, &answer) {
		return answer.Status >= http.StatusInternalServerError
	}
	var final *finalError
	return !errors.As(err, &final) && !isRefused(err)
}

// ask gets the grant of people. The question is remembered, so it goes on after a
// restart, and the grant of one that was consumed is had again as long as it lives.
func (g *Guard) ask(ctx context.Context, r *running, a *action, d Decision) error {
	for range 2 { // a question of before may be over
		if a.Approval == nil {
			if err := g.askAnew(ctx, r, a); err != nil {
				return err
			}
		}
		p, err := g.Client.AwaitApproval(ctx, a.Approval.ID)
		if err != nil {
			return err
		}
		if p.Status != ApprovalApproved && p.Status != ApprovalConsumed {
			return g.denied(r, a, &DeniedError{Reason: "the approval is " + string(p.Status), Decision: d, Approval: p})
		}
		a.Permit.Grant, err = g.Client.ConsumeApproval(ctx, g.Signer, *a.Approval)
		if err == nil {
			return nil
		}
		if !isOver(err) {
			return err
		}
		a.Approval = nil
	}
	return errors.New("the approval was over before it could be used")
}

func isOver(err error) bool {
	var answer *Error
	return errors.As(err, &answer) && (answer.Status == http.StatusGone || answer.Status == http.StatusConflict)
}

func (g *Guard) askAnew(ctx context.Context, r *running, a *action) error {
	who := g.Signer.Identity()
	asked, err := g.Client.AskApproval(ctx, ApprovalQuestion{
		Organization: who.Organization, Agent: who.Agent, Tool: r.Tool, Payload: r.payload, Trace: r.Trace, Principal: r.Principal,
	})
	if err != nil {
		return err
	}
	a.Approval = &asked
	if err := g.Journal.write(a); err != nil {
		return err
	}
	g.OnAsk(asked)
	return nil
}

// denied states a denial and forgets the question: whoever runs the action again
// asks anew.
func (g *Guard) denied(r *running, a *action, why *DeniedError) error {
	a.Permit.Decision, a.Approval = id.Deny, nil
	a.Attempt++
	err := g.Journal.write(a)
	var envelope []byte
	if err == nil {
		envelope, err = g.statement(r, a)
	}
	if err == nil {
		err = g.Journal.push(envelope, false)
	}
	if err != nil {
		g.OnTrouble(fmt.Errorf("state denial: %w", err))
	}
	return why
}

// tightened looks at what the service made of a statement.
func (g *Guard) tightened(a *action, result Result) error {
	if result.Decision <= a.Permit.Decision {
		return nil
	}
	a.Approval = nil
	return &DeniedError{Reason: fmt.Sprintf("the ledger says %s by rule %s of policy %s", result.Decision, result.RuleID, result.PolicyID)}
}

// statement makes the event that states the decision on an action.
func (g *Guard) statement(r *running, a *action) ([]byte, error) {
	kind, extra := "tool_call", map[string]any{}
	if a.Permit.Decision == id.Deny {
		kind = "policy_decision"
	}
	if a.Approval != nil {
		extra["approval_id"] = a.Approval.ID
	}
	if a.Permit.Unasked {
		extra["unasked"] = true
	}
	use := fmt.Sprintf("decision/%d", a.Attempt)
	a.Permit.EventID = g.eventID(a.Key, use)
	return g.sign(a.Key, use, Event{
		ActionKind: kind, TraceID: r.Trace, ActorPrincipal: r.Principal, Decision: a.Permit.Decision, Tool: r.Tool, Payload: r.payload, Extra: extra,
	})
}
