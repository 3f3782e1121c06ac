package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

// isUndecided reports whether only the ledger knows if an action of an earlier process began.
func (a *action) isUndecided() bool { return a.Stage == stageStarted && a.Undecided }

// askLater keeps an action of an earlier process until Flush has asked for the decision on it.
func (j *Journal) askLater(key string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if hash := keyHash(key); !slices.Contains(j.undecided, hash) {
		j.undecided = append(j.undecided, hash)
	}
}

// undecidedNow returns the actions that the service must be asked about.
func (j *Journal) undecidedNow() []id.Hash {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.undecided)
}

func (j *Journal) dropUndecided(hash id.Hash) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.undecided = slices.DeleteFunc(j.undecided, func(h id.Hash) bool { return h == hash })
}

// recoverUndecided asks about the actions of earlier processes. Actions that it cannot ask about
// remain for the next time.
func (g *Guard) recoverUndecided(ctx context.Context) error {
	var failures error
	for _, hash := range g.Journal.undecidedNow() {
		err := g.recoverOne(ctx, hash)
		if err == nil {
			g.Journal.dropUndecided(hash)
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

func (g *Guard) recoverOne(ctx context.Context, hash id.Hash) error {
	a, leave, err := g.Journal.lockByHash(ctx, hash)
	if err != nil || a == nil {
		return err
	}
	defer leave()
	switch {
	case a.Stage == stageDone && !a.Stated: // the queue was full
		return g.stateResult(a, false)
	case !a.isUndecided():
		return nil
	}
	mayHaveBegun, err := g.askAboutIntent(ctx, a)
	switch {
	case err != nil:
		return err
	case !mayHaveBegun:
		return g.Journal.revoke(a.Key, false) // after a crash the ledger is asked again
	}
	a.Stage, a.Failure, a.Undecided = stageDone, ErrInterrupted.Error(), false
	return g.stateResult(a, false)
}

// askAboutIntent asks the ledger whether it has permitted an action, because only then the action
// can have begun. The question stores nothing. If the service will never answer it, the end of the
// action remains unknown.
func (g *Guard) askAboutIntent(ctx context.Context, a *action) (mayHaveBegun bool, err error) {
	r, stored, err := g.Client.FindEvent(ctx, a.Intent)
	switch {
	case client.IsRefused(err):
		return true, nil
	case err != nil:
		return false, err
	case !stored, r.Status == client.Created: // a service that does not support the question has stored it now
		return false, nil
	}
	return r.Decision == id.Allow || r.Decision == 0, nil // an event of a succeeded log has no decision
}
