package policystore

import (
	"context"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/policy"
)

// ActiveSource returns the active policy, or nil if it is certain that there is none.
type ActiveSource interface {
	Active(ctx context.Context, s *log.State) (*policy.Compiled, error)
}

// Evaluate evaluates the policy that is active in s. If it returns an error, the caller must not allow anything. It
// returns the error of log.State.Trusted if the active policy is not certain.
func Evaluate(ctx context.Context, r ActiveSource, s *log.State, in policy.Input) (policy.Evaluation, error) {
	if err := s.Trusted(); err != nil {
		return policy.Evaluation{}, err
	}
	compiled, err := r.Active(ctx, s)
	if err != nil {
		return policy.Evaluation{}, err
	}
	return Apply(ctx, compiled, in)
}

// Apply evaluates a policy, which may be nil. It returns an error if ctx ends, and fault.Unavailable after maxTime of
// processor time.
func Apply(ctx context.Context, compiled *policy.Compiled, in policy.Input) (policy.Evaluation, error) {
	if compiled == nil {
		return policy.NoPolicy(), nil
	}
	p := timeLimit{Context: ctx, spent: threadCPUTime}
	defer p.releaseThread()
	return compiled.EvaluateWithin(&p, in)
}

// InputOf returns the policy input for an event, whose on_behalf_of has the standing. A malformed on_behalf_of of an event that was
// stored earlier counts as absent.
func InputOf(e *event.Envelope, standing event.Standing, now id.Instant) policy.Input {
	in := policy.Input{Tool: e.Tool, Agent: e.AgentID, ActorType: e.ActorType, ActionKind: e.ActionKind, Payload: e.Payload, Now: now}
	if of, err := e.OnBehalfOf(); err == nil && of != nil {
		in.OnBehalfOf, in.Verified = of, standing == event.Verified
	}
	return in
}

// Judgement is the decision of the policy on an event. If there are claims, the sequencer decides, and Policy
// contains only the members that do not depend on limits.
type Judgement struct {
	Policy     event.Policy
	Evaluation policy.Evaluation
}

// Judge applies the policy that is active in s to an event with a declared decision. An event without a tool is not
// evaluated.
func Judge(
	ctx context.Context, r ActiveSource, s *log.State, in policy.Input, declared id.Decision,
) (Judgement, error) {
	if in.Tool == "" {
		return Judgement{Policy: event.Policy{Declared: declared, Effective: declared}}, nil
	}
	evaluation, err := Evaluate(ctx, r, s, in)
	if err != nil {
		return Judgement{}, err
	}
	stated := event.Policy{
		Evaluated:   true,
		Declared:    declared,
		InputDigest: policy.InputDigest(in),
		EvaluatedAt: in.Now,
	}
	return Judgement{Policy: recordOutcome(evaluation.Settle(nil), stated), Evaluation: evaluation}, nil
}

// Attest sets the judgement in an attestation. If there are claims, the sequencer decides, and the receipt of the
// event contains the decision.
func (j *Judgement) Attest(a *log.Attestation) {
	a.Policy = j.Policy
	if len(j.Evaluation.Claims) > 0 {
		evaluation := j.Evaluation // so that only a judgement with claims escapes to the heap
		a.Claims, a.Decide = LimitClaims(&evaluation, j.Policy)
	}
}

// Reasons returns the reason of each rule that may decide, by rule_id: which limits are exceeded is unknown until the
// event has its position in the ledger.
func (j *Judgement) Reasons() map[string]string {
	if !j.Policy.Evaluated {
		return nil
	}
	reasons := make(map[string]string, 1+len(j.Evaluation.Claims))
	none := j.Evaluation.Settle(func(*policy.Claim) bool { return false })
	reasons[none.RuleID] = none.Reason
	for i := range j.Evaluation.Claims {
		alone := j.Evaluation.Settle(func(c *policy.Claim) bool { return c == &j.Evaluation.Claims[i] })
		reasons[alone.RuleID] = alone.Reason
	}
	return reasons
}
