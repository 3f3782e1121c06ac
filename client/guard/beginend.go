package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/id"
)

var (
	// ErrBegun is returned by Begin for an action that has begun before.
	ErrBegun = errors.New("the action was begun before")

	// ErrNotBegun is returned by End if no action with the key has begun.
	ErrNotBegun = errors.New("no action of this key was begun")
)

// Disclosed is a result whose event contains further members in addition to the digest of the
// output. The guard's members take precedence over members of the same name.
type Disclosed struct {
	Output  any
	Members map[string]any
}

// Begin is the first half of Run, for an action that another process executes: it obtains
// permission and records in the journal that the action begins. The action is in progress until End
// or Recover.
//
// Errors are those of Run, and ErrBegun.
func (g *Guard) Begin(ctx context.Context, a Action) (permit Permit, err error) {
	err = g.openAction(ctx, a, func(known *action, begun bool) error {
		if begun {
			return ErrBegun
		}
		permit = known.Permit
		return nil
	})
	return permit, err
}

// End is the second half of Run: it states the result of an action that Begin permitted. output
// must encode as JSON or be a Disclosed; failed is the error of the action, or nil. An action that
// has ended keeps its first result.
//
// Errors are ErrNotBegun, ErrQueueFull and those of the file system.
func (g *Guard) End(ctx context.Context, key string, output any, failed error) error {
	defer g.flushQueue(ctx)
	leave, err := g.Journal.keys.Lock(ctx, key)
	if err != nil {
		return fmt.Errorf("end action: %w", err)
	}
	defer leave()
	a, err := g.Journal.loadAction(key)
	if err != nil {
		return err
	}
	if a == nil || a.Stage == stageDeciding {
		return fmt.Errorf("end action: key %.512q: %w", key, ErrNotBegun)
	}
	if a.Stage == stageDone {
		_, err = g.answerRepeated(a)
		if _, isFailed := errors.AsType[*FailedError](err); isFailed || errors.Is(err, ErrInterrupted) {
			return nil
		}
		return err
	}
	if a.BeganAt > 0 {
		took := max(0, int64(id.InstantOf(time.Now())-a.BeganAt))
		a.DurationMS = &took
	}
	ended := a.noteEnd(output, failed)
	if err := g.stateResult(a, false); err != nil {
		return err
	}
	if failed == nil {
		return ended
	}
	return nil
}

// Recover states as unknown the result of each action that has begun and not ended. The caller MUST
// ensure that no process is still executing one. For an action with a new key, Flush asks the
// service first.
func (g *Guard) Recover(ctx context.Context) error {
	defer g.flushQueue(ctx)
	for _, hash := range g.Journal.unended() {
		a, err := g.Journal.loadByHash(hash)
		if err != nil {
			return fmt.Errorf("recover: %w", err)
		}
		if a == nil || a.Stage != stageStarted {
			continue
		}
		if a.isUndecided() {
			g.Journal.askLater(hash, time.Time{})
			continue
		}
		if _, err := g.answerRepeated(a); !errors.Is(err, ErrInterrupted) {
			return fmt.Errorf("recover: %w", err)
		}
	}
	return nil
}
