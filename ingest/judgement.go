package ingest

import (
	"context"
	"time"

	"github.com/agentledger/agentledger/agent"
	"github.com/agentledger/agentledger/chain"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/fault"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/policy"
)

// prepare is the log.Prepare of the event: all that depends on the ledger's
// configuration is decided here, under the state that the append is guarded by.
func (in *intake) prepare(ctx context.Context, state *log.State) (log.Submission, error) {
	s, e := in.server, in.envelope
	if err := s.turns.Take(ctx, in.caller.party()); err != nil { // a batch has a thousand of these
		return log.Submission{}, err
	}
	defer s.turns.Give(in.caller.party())
	settings, err := s.active(ctx, state)
	if err != nil {
		return log.Submission{}, err
	}
	now := s.clock()
	if err := s.checkClock(now, e.EmittedAt); err != nil {
		return log.Submission{}, err
	}
	key, err := s.agents.SigningKey(ctx, state, e.AgentID, e.KeyID)
	if err != nil {
		return log.Submission{}, err
	}
	if err := checkActive(key.Status); err != nil {
		return log.Submission{}, err
	}
	if in.policy, err = s.decide(ctx, state, e, id.InstantOf(now)); err != nil {
		return log.Submission{}, err
	}
	draft := log.NewDraft(state.Identity(), e, log.Attestation{
		Form: in.form, PublicKey: key.Multikey, Signer: chain.SignerAgent, Custody: key.Custody,
		IngestKeyID: in.caller.KeyID, Policy: in.policy, Disclosure: settings.Disclosure,
		IdempotencyKey: in.idempotencyKey, Cap: s.orgs.Cap(settings),
	})
	return log.Submission{Drafts: []log.Draft{draft}}, nil
}

// checkClock applies the bounds on emitted_at.
func (s *Server) checkClock(now, emitted time.Time) error {
	if emitted.After(now.Add(s.maxAhead)) {
		return fault.New(fault.Invalid, "emitted_at is too far in the future")
	}
	if s.maxAge > 0 && emitted.Before(now.Add(-s.maxAge)) {
		return fault.New(fault.Invalid, "emitted_at is too far in the past")
	}
	return nil
}

func checkActive(status agent.Status) error {
	switch status {
	case agent.Active:
		return nil
	case agent.Retired:
		return fault.New(fault.Invalid, "Signing key retired")
	}
	return fault.New(fault.Invalid, "Signing key revoked")
}

// decide applies the active policy to an event that names a tool.
func (s *Server) decide(ctx context.Context, state *log.State, e *event.Envelope, now id.Instant) (chain.Policy, error) {
	if e.Tool == "" {
		return chain.Policy{Declared: e.Decision, Effective: e.Decision}, nil
	}
	in := policy.Input{
		Tool: e.Tool, Agent: e.AgentID, ActorType: e.ActorType, ActionKind: e.ActionKind,
		Payload: e.Payload, Now: now,
	}
	out, err := s.outcome(ctx, state, in)
	if err != nil {
		return chain.Policy{}, err
	}
	return chain.Policy{
		Evaluated: true, Declared: e.Decision, Effective: out.Effective(e.Decision),
		PolicyID: out.PolicyID, PolicyVersion: out.PolicyVersion, PolicyDigest: out.PolicyDigest,
		RuleID: out.RuleID, Engine: out.Engine, InputDigest: policy.InputDigest(in), EvaluatedAt: now,
	}, nil
}

// outcome evaluates the policy that is active in state.
func (s *Server) outcome(ctx context.Context, state *log.State, in policy.Input) (policy.Outcome, error) {
	compiled, err := s.rulebook.Active(ctx, state)
	if err != nil {
		return policy.Outcome{}, err
	}
	if compiled == nil {
		none := policy.NoPolicy()
		return none.Settle(nil), nil
	}
	evaluation := compiled.Evaluate(in)
	out := evaluation.Settle(nil) // rulebook activates no policy with limits
	s.metrics.shadows.Add(float64(len(out.Shadow)))
	return out, nil
}
