package guard

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/id"
)

// RecordInterrupted queues the results of actions that began before this process and have none: unknown for
// an action without an end. Such an action never runs again, also when it is declared idempotent. It is for
// owners whose keys are made anew for each action. Errors are those of the file system.
func (g *Guard) RecordInterrupted(ctx context.Context) error {
	for _, hash := range g.Journal.unended() {
		if err := g.recordInterrupted(ctx, hash); err != nil {
			return fmt.Errorf("record interrupted actions: %w", err)
		}
	}
	return nil
}

func (g *Guard) recordInterrupted(ctx context.Context, hash id.Hash) error {
	a, err := g.Journal.loadByHash(hash)
	if err != nil || a == nil {
		return err
	}
	leave, err := g.Journal.keys.Lock(ctx, a.Key)
	if err != nil {
		return err
	}
	defer leave()
	a, err = g.Journal.loadByHash(hash) // as it is now
	if err != nil || a == nil || a.Stage == stageDeciding || a.Told {
		return err
	}
	if a.Stage == stageStarted {
		a.Stage, a.Failure = stageDone, ErrInterrupted.Error()
	}
	return g.stateResult(a, false)
}
