package guard

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/id"
)

// RecordInterrupted queues the results of actions that began before this process and have none: unknown for
// an action without an end. Such an action never runs again, also when it is declared idempotent. Of an action whose
// decision this process can't know, Flush asks the service first. It is for owners whose keys are made anew for each
// action. It makes no request. Errors are those of the file system.
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
	case a.Stage == stageDeciding || a.Told:
		return nil
	case a.isUndecided():
		g.Journal.askLater(a.Key)
		return nil
	}
	if a.Stage == stageStarted {
		a.Stage, a.Failure = stageDone, ErrInterrupted.Error()
	}
	return g.stateResult(a, false)
}

// lockByHash takes the lock of an action, and returns its newest state. The action is nil when there is none.
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
