package guard

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agentledger/agentledger/internal/durable"
)

// RecordInterrupted queues the results of actions that began before this process and have none: unknown for
// an action without an end. Such an action never runs again, also when it is declared idempotent. It is for
// owners whose keys are made anew for each action. Errors are those of the file system.
func (g *Guard) RecordInterrupted(ctx context.Context) error {
	files, err := os.ReadDir(g.Journal.actionsDir())
	if err != nil {
		return fmt.Errorf("record interrupted actions: %w", err)
	}
	for _, f := range files {
		if filepath.Ext(f.Name()) == durable.TemporarySuffix {
			continue
		}
		if err := g.recordInterrupted(ctx, filepath.Join(g.Journal.actionsDir(), f.Name())); err != nil {
			return fmt.Errorf("record interrupted actions: %w", err)
		}
	}
	return nil
}

func (g *Guard) recordInterrupted(ctx context.Context, path string) error {
	a, err := readAction(path)
	if err != nil || a.Stage == stageDeciding || a.Told {
		return err
	}
	leave, err := g.Journal.keys.Lock(ctx, a.Key)
	if err != nil {
		return err
	}
	defer leave()
	if a.Stage == stageStarted {
		a.Stage, a.Failure = stageDone, ErrInterrupted.Error()
	}
	return g.stateResult(a, false)
}
