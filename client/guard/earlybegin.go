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

// The line that records the begin of an action is written before its intent is sent, and synced
// while the service decides, because both the sync and the request take time. So the line exists
// before the decision is known (action.Undecided), and an intent that the process has sent before it
// was killed is in the journal. After a crash the ledger is asked what was decided
// (recoverUndecided). An action with a caller's key has no such line, because its intent is sent
// again after a restart.

// beginEarly writes that an action begins, and starts to sync it. The returned function waits for
// the sync and MUST be called.
func (g *Guard) beginEarly(a *action) (synced func() error) {
	if !a.New {
		return func() error { return nil }
	}
	begun := *a
	begun.Stage, begun.Undecided, begun.BeganAt = stageStarted, true, id.InstantOf(time.Now())
	r := g.Journal.newRecord(&begun, nil)
	line, err := g.Journal.append(r)
	if err != nil {
		return func() error { return err }
	}
	done := make(chan error, 1)
	go func() { done <- g.Journal.await(r, line) }()
	<-line.Written()
	return func() error {
		err := <-done
		if err == nil {
			a.Stage, a.BeganAt, a.begunEarly = begun.Stage, begun.BeganAt, true
		}
		return err
	}
}

// revokeBegin records that an action does not begin, because of a failure. If the ledger can contain
// its permission, Flush asks, and states the result of the action as an error. The ledger contains a
// denial, so its record is written with the next step of an action. Any other record is written
// durably.
func (g *Guard) revokeBegin(a *action, failure error) {
	if !a.begunEarly {
		return
	}
	a.begunEarly = false
	_, denied := errors.AsType[*client.DeniedError](failure)
	var err error
	if denied || errors.Is(failure, errForget) || isDeclined(failure) {
		err = g.Journal.revoke(a.Key, !denied)
	} else {
		revoked := *a
		revoked.Undecided, revoked.Failure = true, errNotBegun.Error()
		if err = g.Journal.store(&revoked, nil); err == nil {
			g.Journal.askLater(keyHash(a.Key), time.Now().Add(g.Journal.options.settle))
		}
	}
	a.Stage, a.BeganAt = stageDeciding, 0
	if err != nil {
		g.OnError(fmt.Errorf("record that the action does not begin: %w", err))
	}
}

// errNotBegun is the failure of an action that ended before its decision was known. The service may
// have permitted it.
var errNotBegun = errors.New("the action was not begun, because its decision was not known in time")

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
