package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/internal/mcp/message"
)

// beginWait bounds the wait for people, and tells the client about it. The returned function ends it.
func (c *call) beginWait(approval string) (end func()) {
	s := c.session
	c.deciding.Stop()
	c.mu.Lock()
	c.approval, c.stage = approval, waiting
	c.mu.Unlock()
	s.mu.Lock()
	full := s.waiting >= s.gate.Bounds.Waiting
	s.waiting++
	s.mu.Unlock()
	wait := s.gate.Wait
	if full { // the client is told at once to call again
		wait = 0
	}
	timer := time.AfterFunc(wait, func() { c.interrupt(errWaitOver) })
	over := make(chan struct{})
	if c.token != nil && !full {
		s.fetching.Go(func() { c.reportWait(approval, over) })
	}
	return func() {
		timer.Stop()
		close(over)
		s.mu.Lock()
		s.waiting--
		s.mu.Unlock()
	}
}

// reportWait sends progress until the wait is over. The steps are tiny, because the server's own progress
// follows and must not go back.
func (c *call) reportWait(approval string, over <-chan struct{}) {
	ticker := time.NewTicker(c.session.gate.Progress)
	defer ticker.Stop()
	for step := 1; ; step++ {
		c.mu.Lock()
		quiet := c.stage >= sent || c.dropped
		c.mu.Unlock()
		if quiet {
			return
		}
		m, err := message.Notification("notifications/progress", map[string]any{
			"progressToken": c.token, "progress": float64(step) / 1e6, "message": "waits for people: " + approval,
		})
		if err == nil {
			c.session.answer(m)
		}
		select {
		case <-ticker.C:
		case <-over:
			return
		}
	}
}

// staysOpen reports whether an equal call goes on with the question of this one.
func (c *call) staysOpen(ctx context.Context, err error) bool {
	if err == nil || c.wasEntered() || c.alone {
		return false
	}
	_, denied := errors.AsType[*client.DeniedError](err)
	_, failed := errors.AsType[*guard.FailedError](err)
	return !denied && !failed && !errors.Is(err, guard.ErrInterrupted) && !errors.Is(err, guard.ErrKeyReused) &&
		!errors.Is(context.Cause(ctx), ErrManyQuestions)
}

// withdraw cancels an approval that no call waits for.
func (g *Gateway) withdraw(approval string) {
	ctx, cancel := context.WithTimeout(context.Background(), client.DefaultTimeout)
	defer cancel()
	if err := g.Client.CancelApproval(ctx, approval); err != nil {
		g.OnError(err)
	}
}
