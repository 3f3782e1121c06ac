package workflow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/tenant/agent"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Recorded is a step in the ledger.
type Recorded struct {
	Policy event.Policy // as in the record
	Reason string       // of the deciding rule, for humans
	Placed
	Consumed *Consumed // nil if the step consumed no approval
}

// noTool is the reason of steps without a tool, for which no policy is evaluated.
const noTool = "The step names no tool, so no policy was asked."

// recordTries bounds how often steps are prepared from the start.
const recordTries = 4

// Record adds steps of a run to the ledger, in order and all or none, and returns the policy's decision on each. Steps
// that are already in the ledger are returned again, even if the run has ended in the meantime. Record completes steps.
// It may be repeated after any error. A step with an approval consumes it, unless the policy denies the step.
//
// It returns, in this order: fault.Invalid for malformed steps; fault.NotFound for another ingest key; fault.Invalid if
// one of the steps was recorded with other content; fault.Conflict if the run has ended or exceeds MaxSteps;
// fault.Invalid if the run's agent is no longer enabled for the bridge; the errors of approval.Uses.Consume;
// fault.TooLarge; fault.PlanLimit; the errors of log.Ledgers.Append.
func (w *Workflows) Record(
	ctx context.Context, t id.Tenant, ingestKey string, name ID, steps []Step,
) ([]Recorded, error) {
	if err := checkSteps(steps); err != nil {
		return nil, err
	}
	leave, err := w.lanes.Lock(ctx, place{t, name})
	if err != nil {
		return nil, err
	}
	defer leave()
	r := recording{workflows: w, place: place{t, name}, ingestKey: ingestKey, steps: steps}
	for range recordTries {
		receipts, err := w.ledgers.Append(ctx, t, r.prepareSteps)
		switch {
		case errors.Is(err, log.ErrDuplicate): // a concurrent request has just recorded it
		case err != nil:
			w.known.Delete(r.place)
			r.settleRefused(ctx)
			return nil, translateError(err)
		case len(receipts) > 0:
			return r.describeLanded(receipts), nil
		case !r.unsigned: // all steps are known
			return r.results, nil
		default:
			if err := w.ensureBridge(ctx, t, ingestKey); err != nil {
				return nil, fmt.Errorf("record steps: %w", err)
			}
		}
	}
	return nil, &fault.Error{
		Kind:       fault.Overloaded,
		Code:       "overloaded",
		Message:    "Too many requests for the same run",
		RetryAfter: time.Second,
	}
}

// translateError describes an unknown outcome in terms of steps.
func translateError(err error) error {
	if fault.Is(err, fault.OutcomeUnknown) {
		return &fault.Error{Kind: fault.OutcomeUnknown, Code: "outcome_unknown", RetryAfter: time.Second, Err: err,
			Message: "The steps may have been recorded; send them again unchanged"}
	}
	return fmt.Errorf("record steps: %w", err)
}

// recording is the steps of one request that are being appended.
type recording struct {
	workflows *Workflows
	place     place
	ingestKey string
	steps     []Step

	// Results of the last preparation.
	prepared bool
	run      records.Versioned[record]
	results  []Recorded // of all steps
	made     []*making
	unsigned bool           // no bridge key is active, and nothing was submitted
	uses     *approval.Uses // of approvals; nil if none
	refused  approval.ID    // an approval that a step cannot consume; "" if none
}

// making is a new step.
type making struct {
	result   *Recorded
	judged   policystore.Judgement
	envelope *event.Envelope
	says     policystore.Result  // whose result the step claims to be, if any
	intent   *policystore.Intent // of a result; nil for an event that the policy decides
}

// prepareSteps is the log.Prepare of the steps. Everything that depends on the run and on the organization's
// configuration is decided here, under the state and the version of the run that guard the append.
func (r *recording) prepareSteps(ctx context.Context, s *log.State) (log.Submission, error) {
	w := r.workflows
	settings, err := w.activeSettings(ctx, s)
	if err != nil {
		return log.Submission{}, err
	}
	if err := r.readRun(ctx); err != nil {
		return log.Submission{}, err
	}
	r.results, r.made, r.unsigned, r.uses, r.refused = make([]Recorded, len(r.steps)), nil, false, nil, ""
	fresh, err := r.recallSteps(ctx, s)
	if err != nil {
		return log.Submission{}, err
	}
	if len(fresh) == 0 {
		return log.Submission{}, nil
	}
	now := w.currentTime()
	switch status := r.run.Value.statusAt(now); {
	case status != Running:
		return log.Submission{}, errEnded(status)
	case r.run.Value.Steps+len(fresh) > MaxSteps:
		return log.Submission{}, errConflict("A run has at most 10000 steps")
	}
	return r.buildSubmission(ctx, s, settings, fresh, now)
}

// buildSubmission creates the events of new steps, and adds the steps to the run's records.
func (r *recording) buildSubmission(
	ctx context.Context, s *log.State, settings *org.Settings, fresh []int, now id.Instant,
) (sub log.Submission, err error) {
	w := r.workflows
	signer, err := w.signingKey(ctx, s, r.run.Value.Agent)
	if r.unsigned = signer == nil; err != nil || r.unsigned {
		return sub, err
	}
	if err := r.findIntents(ctx, fresh); err != nil {
		return sub, err
	}
	if w.processors != nil { // signing is CPU-bound
		tenant := admission.TenantOf(r.place.tenant)
		if err := w.processors.Acquire(ctx, tenant, 1); err != nil {
			return sub, err
		}
		defer w.processors.Release(tenant, 1)
	}
	next := r.run
	next.Value.LastAt = now
	if now < r.run.Value.LastAt { // the clock was ahead, so the run is due before its entry
		deadline := schedule.Entry{At: next.Value.nextDeadline(), Tenant: r.place.tenant, Name: string(r.place.name)}
		if err := w.due.NoteEntries(ctx, deadline); err != nil {
			return sub, errUnreadable("note when the run is due", err)
		}
	}
	tally := keyTally{workflows: w, place: r.place, seen: make(map[string]bool)}
	var list records.Versioned[listRecord]
	for n, i := range fresh {
		m, step := r.made[n], &r.steps[i]
		draft, err := r.draftRecord(ctx, s, m, settings, signer, step, now)
		if err != nil {
			return sub, err
		}
		late, err := tally.count(ctx, &next.Value, step)
		if err != nil {
			return sub, err
		}
		change, err := r.stepChange(m, step, draft.ID)
		if err != nil {
			return sub, err
		}
		sub.Drafts, sub.Changes = append(sub.Drafts, draft), append(append(sub.Changes, change), late...)
		list.Value.Steps = append(list.Value.Steps,
			listedStep{draft.ID, step.Key, step.Attempt, step.Tool, step.Status})
	}
	next.Value.Steps += len(fresh)
	list.Key = listName(r.place.name, next.Value.Steps)
	listed, err := w.stores.lists.Put(list)
	if err != nil {
		return sub, err
	}
	change, err := w.stores.runs.Put(next)
	if err != nil {
		return sub, err
	}
	sub.Changes, r.run = append(sub.Changes, listed, change), next
	err = r.consumeApprovals(ctx, s, fresh, &sub)
	return sub, err
}

// draftRecord returns the event of a new step. It is decided like an agent's event.
func (r *recording) draftRecord(
	ctx context.Context, s *log.State, m *making, settings *org.Settings, signer *agent.Bridge, step *Step,
	now id.Instant,
) (log.Draft, error) {
	w := r.workflows
	e, err := step.signStep(s.Identity(), r.place.name, &r.run.Value, signer, now, w.maxBytes)
	if err != nil {
		return log.Draft{}, err
	}
	if m.envelope = e; m.intent != nil {
		m.judged = m.intent.Judgement(m.says, e.Decision)
	} else if m.judged, err = policystore.Judge(ctx, w.policies, s, policystore.InputOf(e, step.Standing, now), e.Decision); err != nil {
		return log.Draft{}, err
	}
	if m.consumes(step) {
		m.judged.Policy.ApprovalID = string(step.Approval)
	}
	m.result.Policy, m.result.Event = m.judged.Policy, e.EventID
	a := log.Attestation{
		Form: event.FormDigest, PublicKey: signer.Key.Multikey, Signer: event.SignerBridge, Custody: signer.Key.Custody,
		IngestKeyID: r.ingestKey, Disclosure: settings.Disclosure, Cap: w.orgs.EventsPerMonth(settings),
		Traceparent: step.Traceparent, OnBehalfOf: step.Standing,
	}
	m.judged.Attest(&a)
	return log.NewDraft(s.Identity(), e, a), nil
}

func (r *recording) stepChange(m *making, step *Step, name id.Event) (storage.Change, error) {
	digest, err := step.digestStep()
	if err != nil {
		return storage.Change{}, err
	}
	stored := stepRecord{Digest: digest, Reasons: m.judged.Reasons()}
	if m.consumes(step) {
		stored.Approval = step.Approval
	}
	return r.workflows.stores.steps.Put(records.Versioned[stepRecord]{Key: stepName(r.place.name, name), Value: stored})
}

// describeLanded returns the results of the steps when their events are durable.
func (r *recording) describeLanded(receipts []log.Receipt) []Recorded {
	for i, m := range r.made {
		receipt := &receipts[i]
		if receipt.Decided != nil {
			m.result.Policy = *receipt.Decided
		}
		r.workflows.intents.Committed(r.place.tenant, m.envelope, &m.result.Policy)
		m.result.Index, m.result.Hash, m.result.ChainValid = receipt.Index, receipt.EventHash, receipt.ChainValid
		m.result.Reason = reasonOfError(m.result.Policy, m.judged.Reasons())
		r.workflows.metrics.steps[m.result.Policy.Effective].Inc()
	}
	if r.uses != nil {
		r.uses.Landed()
	}
	r.run.Version++
	r.workflows.known.Put(r.place, r.run)
	return r.results
}
