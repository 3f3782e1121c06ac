package witness

import (
	"context"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/tlog"
)

// round is one round of a ledger: the submissions of one checkpoint to all its
// witnesses.
type round struct {
	w           *Witnesses
	active      *activePolicy
	state       *log.State
	record      *ledgerRecord
	submissions []*submission
	retry       retryTimes // because some witnesses are paused
	refreshes   bool       // no cosignature is missing: they are renewed
	confirms    bool       // the head has no anchor: see anchor.go
	foreign     bool       // the round belongs to the queue of own witnesses
}

// prepareRound reads the state for a round. It returns nil if there is no witness to call.
func (w *Witnesses) prepareRound(ctx context.Context, e *queuedLedger) (*round, error) {
	state, err := w.Ledgers.State(ctx, e.tenant)
	if err != nil {
		return nil, err
	}
	r := &round{w: w, state: state, confirms: w.Anchor && state.Fault().Level == log.ReadOnly}
	if level := state.Fault().Level; level != log.Healthy && level != log.Suspect && !r.confirms || state.Size() == 0 {
		return nil, nil
	}
	setting, err := w.Organizations.Witnessing(ctx, e.tenant)
	if err != nil {
		return nil, err
	}
	if r.active, err = w.currentPolicy(e.tenant, setting); err != nil {
		return nil, err
	}
	w.queue.noteWitnesses(e, len(r.active.targets) > 0)
	if len(r.active.targets) == 0 {
		return nil, nil
	}
	if r.active.hasOwnPolicy() && !e.own {
		e.own, r.foreign = true, true
		return r, nil
	}
	if r.record, err = w.readRecord(ctx, e.tenant); err != nil || r.contradictsStored(ctx) {
		return nil, err
	}
	if r.confirms {
		r.chooseToConfirm()
	} else {
		r.chooseEndpoints()
	}
	return r, nil
}

// contradictsStored reports whether the head does not extend a stored cosigned checkpoint, as far as their sizes
// show. It then freezes the ledger.
func (r *round) contradictsStored(ctx context.Context) bool {
	shown, known := r.state.Shown(), r.record.newest
	if known.treeSize() < shown.Size || known == nil || known.isOfCheckpoint(shown) {
		return false
	}
	r.w.freezeContradicted(ctx, r.state, fmt.Sprintf(
		"the head of size %[2]d does not extend the stored cosigned checkpoint of size %[1]d", known.treeSize(), shown.Size))
	return true
}

// chooseEndpoints chooses the endpoints to call now, and records when the others are due.
func (r *round) chooseEndpoints() {
	shown := r.state.Shown()
	r.record.applyPolicy(r.active)
	now := r.w.Clock()
	r.refreshes = true
	for _, e := range r.active.endpoints {
		due, at := r.record.submissionDue(e, shown, now)
		switch {
		case due:
			r.refreshes = false
		case at.IsZero(): // no cosignature is missing
			due, at = r.record.refreshDue(e, r.w.Refresh/2, now)
		}
		if due {
			r.submissions = append(r.submissions, r.newSubmission(e))
		}
		r.retry = r.retry.combineEarliest(retryTimes{paused: at})
	}
}

// newSubmission returns the submission to an endpoint.
func (r *round) newSubmission(e *endpoint) *submission {
	return &submission{w: r.w, endpoint: e, state: r.state, shown: r.state.Shown(), old: r.record.acknowledged(e)}
}

// submissionDue reports whether a checkpoint lacks the cosignature of a key of the endpoint, and the witness may be
// called now. Otherwise at is the time when it may be called, or zero if no cosignature is missing.
func (p *ledgerRecord) submissionDue(e *endpoint, c tlog.Checkpoint, now time.Time) (is bool, at time.Time) {
	for _, t := range e.targets {
		if p.newest.isOfCheckpoint(c) && p.newest.isCosignedBy(t.Key) {
			continue
		}
		until := p.hintOrZero(t.Key).Until
		if until <= id.InstantOf(now) {
			return true, time.Time{}
		}
		at = earlierTime(at, until.Time())
	}
	return false, at
}
