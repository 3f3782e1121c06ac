package guard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
)

// isUndecided reports whether only the ledger knows if an action was permitted: one of an earlier
// process, which then may have begun, or one that this process gave up (revokeBegin).
func (a *action) isUndecided() bool { return a.Stage == stageStarted && a.Undecided }

// undecided is an action that the service must be asked about.
type undecided struct {
	hash id.Hash   // of the action's key
	due  time.Time // not before this time
}

// askLater keeps an undecided action until Flush has asked for the decision on it, which it does no
// earlier than due.
func (j *Journal) askLater(hash id.Hash, due time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, u := range j.undecided {
		if u.hash == hash {
			j.undecided[i].due = due
			return
		}
	}
	j.undecided = append(j.undecided, undecided{hash, due})
}

// undecidedNow returns the actions that the service must be asked about now.
func (j *Journal) undecidedNow() (hashes []id.Hash) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, u := range j.undecided {
		if !u.due.After(time.Now()) {
			hashes = append(hashes, u.hash)
		}
	}
	return hashes
}

func (j *Journal) dropUndecided(hash id.Hash) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.undecided = slices.DeleteFunc(j.undecided, func(u undecided) bool { return u.hash == hash })
}

// recoverUndecided asks about the undecided actions that are due. Actions that it cannot ask about
// remain for the next time.
func (g *Guard) recoverUndecided(ctx context.Context) error {
	var failures error
	for _, hash := range g.Journal.undecidedNow() {
		settled, err := g.recoverOne(ctx, hash)
		if err == nil {
			if settled {
				g.Journal.dropUndecided(hash)
			}
			continue
		}
		err = fmt.Errorf("find out what was decided: %w", err)
		if client.IsUnreachable(err) {
			return err
		}
		failures = errors.Join(failures, err)
	}
	return failures
}

// defaultSettle is how long the service may take to store an intent whose sender has gone.
const defaultSettle = 10 * time.Second

// recoverOne states the result of an undecided action, or forgets it. It reports false if the service
// has not stored the intent and can still do so.
func (g *Guard) recoverOne(ctx context.Context, hash id.Hash) (settled bool, err error) {
	a, leave, err := g.Journal.lockByHash(ctx, hash)
	if err != nil || a == nil {
		return true, err
	}
	defer leave()
	switch {
	case a.Stage == stageDone && !a.Stated: // the queue was full
		return true, g.stateResult(a, true)
	case !a.isUndecided():
		return true, nil
	}
	fate, err := g.askAboutIntent(ctx, a)
	due := a.BeganAt.Time().Add(g.Journal.options.settle)
	switch {
	case err != nil:
		return false, err
	case fate == notStored && due.After(time.Now()):
		g.Journal.askLater(hash, due)
		return false, nil
	case fate == needsApproval:
		err = g.withdrawQuestion(ctx, a)
	}
	if err != nil {
		return false, err
	}
	if fate != permitted {
		return true, g.Journal.revoke(a.Key, false) // after a crash the ledger is asked again
	}
	a.Stage, a.Undecided = stageDone, false
	if a.Failure == "" {
		a.Failure = ErrInterrupted.Error()
	}
	return true, g.stateResult(a, true) // an undecided action has a slot of the queue
}

// reopenUndecided lets an undecided action go on with its intent, unless it can have begun. It does not store that: the
// intent is sent again, and its answer gives the next state.
func (g *Guard) reopenUndecided(ctx context.Context, a *action, idempotent bool) error {
	if a.Failure == "" && !idempotent {
		if fate, err := g.askAboutIntent(ctx, a); err != nil || fate == permitted {
			return err
		}
	}
	a.Stage, a.Undecided, a.Failure, a.BeganAt = stageDeciding, false, "", 0
	return nil
}

// intentFate is what the ledger has decided on an intent.
type intentFate int

const (
	notStored intentFate = iota
	permitted
	denied
	needsApproval
)

// askAboutIntent asks the ledger whether it has permitted an action, because only then the action
// can have begun. The question stores nothing. If the service will never answer it, an action that
// can have begun counts as permitted, so its end remains unknown.
func (g *Guard) askAboutIntent(ctx context.Context, a *action) (intentFate, error) {
	r, stored, err := g.Client.FindEvent(ctx, a.Intent)
	switch {
	case isDeclined(err) && a.Failure == "":
		return permitted, nil
	case isDeclined(err):
		return denied, nil
	case err != nil || !stored:
		return notStored, err
	case r.Status == client.Created: // a service that does not support the question has stored it now
		return denied, nil
	case r.Decision == id.AllowWithObligation:
		return needsApproval, nil
	case r.Decision == id.Deny:
		return denied, nil
	}
	return permitted, nil // an event of a succeeded log has no decision
}

// withdrawQuestion cancels the approval that an intent has requested, because nobody waits for it. It
// requests the approval of the same intent to find out its ID.
func (g *Guard) withdrawQuestion(ctx context.Context, a *action) error {
	r, err := g.Client.SendIntent(ctx, a.Intent)
	if err == nil && r.Approval != nil {
		err = g.Client.CancelApproval(ctx, r.Approval.ID)
	}
	if isDeclined(err) { // it has ended, or the ingest key may not request approvals
		return nil
	}
	return err
}

// isDeclined reports whether the same question is unlikely to get another answer: err contains an
// *client.Error that is provably the service's, with a 4xx status other than 401, 408 and 429, or a
// *fault.Error from a check before sending. An event may still be accepted later (client.IsRefused).
func isDeclined(err error) bool {
	if _, malformed := errors.AsType[*fault.Error](err); malformed {
		return true
	}
	answer, ok := errors.AsType[*client.Error](err)
	return ok && answer.Proved && answer.Status/100 == 4 && answer.Status != http.StatusTooManyRequests &&
		answer.Status != http.StatusRequestTimeout && answer.Status != http.StatusUnauthorized
}
