package ingest

import (
	"context"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/internal/tenant/agent"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/policy"
)

// prepareAppend is the log.Prepare of the event. Each event of a batch waits for its own turn. The event waits for a
// processor again after readEvent, because between the two the store is read, and no request holds a processor while it
// waits for the store.
func (in *incomingEvent) prepareAppend(ctx context.Context, state *log.State) (sub log.Submission, err error) {
	err = in.server.compute(ctx, in.caller, func() (err error) {
		sub, err = in.decideUnder(ctx, state)
		return err
	})
	return sub, err
}

// decideUnder decides everything about the event that depends on the organization's configuration. The same state
// guards the append: if the configuration changes before the event is sequenced, it is decided again.
func (in *incomingEvent) decideUnder(ctx context.Context, state *log.State) (log.Submission, error) {
	s, e := in.server, in.envelope
	settings, err := s.activeSettings(ctx, state)
	if err != nil {
		return log.Submission{}, err
	}
	now := s.clock()
	if err := s.checkNewEvent(now, e); err != nil {
		return log.Submission{}, err
	}
	key, err := s.agents.SigningKey(ctx, state, e.AgentID, e.KeyID)
	if err != nil {
		return log.Submission{}, err
	}
	if err := checkActive(&key); err != nil {
		return log.Submission{}, err
	}
	if err := in.checkSubject(); err != nil {
		return log.Submission{}, err
	}
	judged, err := in.applyPolicy(ctx, state, id.InstantOf(now))
	if err != nil {
		return log.Submission{}, err
	}
	in.policy, in.evaluation = judged.Policy, judged.Evaluation
	a := log.Attestation{
		Form: in.form, PublicKey: key.Multikey, Signer: event.SignerAgent, Custody: key.Custody,
		IngestKeyID: in.caller.KeyID, Disclosure: settings.Disclosure,
		IdempotencyKey: in.idempotencyKey, Cap: s.orgs.EventsPerMonth(settings),
	}
	if in.traceparent != (event.Traceparent{}) && e.Traceparent() == (event.Traceparent{}) {
		a.Traceparent = in.traceparent
	}
	a.OnBehalfOf = in.standing
	judged.Attest(&a)
	return log.Submission{Drafts: []log.Draft{log.NewDraft(state.Identity(), e, a)}}, nil
}

// checkNewEvent runs the checks of events that are not stored yet. Replays skip them.
func (s *Server) checkNewEvent(now time.Time, e *event.Envelope) error {
	if event.ReservedEvent(string(e.EventID)) {
		return fault.New(fault.Invalid, "An event_id that begins with ledger_ or stp_ is reserved for the server")
	}
	if _, err := e.OnBehalfOf(); err != nil {
		return err
	}
	return s.checkClock(now, e.EmittedAt)
}

// earliestEmitted is later than the zero times of programming languages (year 1, 1970), and than times in seconds that
// were sent as milliseconds.
var earliestEmitted = time.Date(1971, time.January, 1, 0, 0, 0, 0, time.UTC)

// checkClock applies the bounds on emitted_at.
func (s *Server) checkClock(now, emitted time.Time) error {
	if emitted.After(now.Add(s.maxAhead)) {
		return fault.New(fault.Invalid, "emitted_at is too far in the future")
	}
	if emitted.Before(earliestEmitted) {
		return fault.New(fault.Invalid, "emitted_at is before 1971: it looks like a time that was not set")
	}
	if s.maxAge > 0 && emitted.Before(now.Add(-s.maxAge)) {
		return fault.New(fault.Invalid, "emitted_at is too far in the past")
	}
	return nil
}

func checkActive(k *agent.Key) error {
	switch {
	case k.Status == agent.Retired:
		return fault.New(fault.Invalid, "Signing key retired")
	case k.Status != agent.Active:
		return fault.New(fault.Invalid, "Signing key revoked")
	case k.AgentInactive:
		return agent.ErrInactive()
	}
	return nil
}

// applyPolicy applies the active policy to an event that names a tool. A result gets the decision of its intent.
func (in *incomingEvent) applyPolicy(ctx context.Context, state *log.State, now id.Instant) (policystore.Judgement,
	error) {
	s, e := in.server, in.envelope
	if in.intent != nil {
		return in.intent.Judgement(*in.result, e.Decision), nil
	}
	judged, err := policystore.Judge(ctx, s.policies, state, policystore.InputOf(e, in.standing, now), e.Decision)
	s.countShadows(&judged.Evaluation)
	return judged, err
}

// countShadows counts the shadow rules that match. Rules with limits are not counted, because their counters are read
// later.
func (s *Server) countShadows(e *policy.Evaluation) {
	certain := e.Settle(func(*policy.Claim) bool { return false })
	s.metrics.shadows.Add(float64(len(certain.Shadow)))
}
