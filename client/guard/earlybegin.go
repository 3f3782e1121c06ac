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

// The line that records the begin of an action is written while its intent is sent, because both
// take a sync. So the line exists before the decision is known (action.Undecided). After a crash
// the ledger is asked what was decided (recoverUndecided). An action with a caller's key has no
// such line, because its intent is sent again after a restart.

// beginEarly starts writing that an action begins. The returned function waits for the write and
// MUST be called.
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

// revokeBegin records that an action does not begin, because of a failure. The ledger contains a
// denial, so its record is written with the next step of an action. Any other record is written
// durably, because after a lost answer the ledger may contain a permission.
func (g *Guard) revokeBegin(a *action, failure error) {
	if !a.begunEarly {
		return
	}
	a.Stage, a.BeganAt, a.begunEarly = stageDeciding, 0, false
	_, denied := errors.AsType[*client.DeniedError](failure)
	if err := g.Journal.revoke(a.Key, !denied); err != nil {
		g.OnError(fmt.Errorf("record that the action does not begin: %w", err))
	}
}

// revoke forgets an action that never began. Unless durably is set, the record may be lost in a
// crash.
func (j *Journal) revoke(key string, durably bool) error {
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
