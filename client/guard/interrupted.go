package guard

import (
	"context"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/id"
)

// RecordInterrupted queues the results of actions that began before this process and have none:
// unknown for an action without an end. Such an action never runs again, even if it is declared
// idempotent. If this process cannot know the decision on an action, Flush asks the service first.
// It is for owners that generate a new key for each action. It makes no request. Errors are those
// of the file system.
func (g *Guard) RecordInterrupted(ctx context.Context) error {
	for _, hash := range g.Journal.unended() {
		if err := g.recordInterrupted(ctx, hash); err != nil {
			return fmt.Errorf("record interrupted actions: %w", err)
		}
	}
	return nil
}

func (g *Guard) recordInterrupted(ctx context.Context, hash id.Hash) error {
	a, leave, err := g.Journal.lockByHash(ctx, hash)
	if err != nil || a == nil {
		return err
	}
	defer leave()
	switch {
	case a.Stage == stageDeciding || a.Stated:
		return nil
	case a.isUndecided():
		g.Journal.askLater(hash, time.Time{})
		return nil
	}
	if a.Stage == stageStarted {
		a.Stage, a.Failure = stageDone, ErrInterrupted.Error()
	}
	return g.stateResult(a, false)
}

// lockByHash locks an action and returns its latest state, or nil if there is none.
func (j *Journal) lockByHash(ctx context.Context, hash id.Hash) (a *action, leave func(), err error) {
	a, err = j.loadByHash(hash)
	if err != nil || a == nil {
		return nil, nil, err
	}
	if leave, err = j.keys.Lock(ctx, a.Key); err != nil {
		return nil, nil, err
	}
	a, err = j.loadByHash(hash)
	if err != nil || a == nil {
		leave()
		return nil, nil, err
	}
	return a, leave, nil
}
