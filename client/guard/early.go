package guard

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard/internal/linelog"
	"github.com/agentledger/agentledger/id"
)

// The line that says that an action begins is written while its intent is sent, because both take a sync. So the
// line is there before the decision is known (action.Undecided). After a crash the ledger tells what became of it
// (recoverUndecided). An action with a key of the caller has no such line, because a restart sends its intent again.

// beginEarly begins to write that an action begins. The returned function waits for the write, and MUST be called.
func (g *Guard) beginEarly(a *action) (written func() error) {
	if !a.New {
		return func() error { return nil }
	}
	begun := *a
	begun.Stage, begun.Undecided, begun.BeganAt = stageStarted, true, id.InstantOf(time.Now())
	r := g.Journal.newRecord(&begun, nil)
	done := make(chan error, 1)
	go func() { done <- g.Journal.write(r) }()
	return func() error {
		err := <-done
		if err == nil {
			a.Stage, a.BeganAt, a.begunEarly = begun.Stage, begun.BeganAt, true
		}
		return err
	}
}

// takeBegunBack notes that an action does not begin, because of a failure. The ledger knows of a denial, so its note
// is written with the next step of an action. Any other note is durable, because after a lost answer the ledger may
// hold a permission.
func (g *Guard) takeBegunBack(a *action, failure error) {
	if !a.begunEarly {
		return
	}
	a.Stage, a.BeganAt, a.begunEarly = stageDeciding, 0, false
	_, denied := errors.AsType[*client.DeniedError](failure)
	if err := g.Journal.takeBack(a.Key, !denied); err != nil {
		g.OnTrouble(fmt.Errorf("note that the action does not begin: %w", err))
	}
}

// takeBack forgets an action that was never begun. Unless it is durable, the note may be lost in a crash.
func (j *Journal) takeBack(key string, durably bool) error {
	r := record{NotBegun: key}
	j.numberRecord(&r)
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	j.mu.Lock()
	note := j.lines.Append(text)
	j.takeRecord(r, linelog.Place{})
	j.mu.Unlock()
	if !durably && j.lines.Gathered() < maxGathered {
		return nil
	}
	if _, err := note.Wait(); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}
