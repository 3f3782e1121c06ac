package approval

import (
	"context"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
)

// MaxWait is the maximum duration of a long poll.
const MaxWait = 30 * time.Second

// Release returns the current state to all waiting callers, and to all later ones, so that a process that stops keeps
// no caller waiting.
func (a *Approvals) Release() { a.hub.Close() }

// Get returns an approval to the ingest key that requested it. For all others the approval does not exist. While the
// approval is pending, Get waits for a change for at most wait, and at most MaxWait. Agents act on the result, so the
// errors of log.State.Trusted come first.
func (a *Approvals) Get(
	ctx context.Context, t id.Tenant, ingestKey string, name ID, wait time.Duration,
) (Approval, error) {
	deadline := time.NewTimer(min(wait, MaxWait))
	defer deadline.Stop()
	for {
		news, done := a.hub.Subscribe(name) // before reading, so that no change is missed
		found, err := a.findTrusted(ctx, t, name, onlyAsker(ingestKey))
		if err != nil || found.Status != Pending || wait <= 0 || a.hub.Closed() ||
			!a.awaitNews(ctx, found, news, deadline.C) {
			done()
			return found, err
		}
		done()
	}
}

// awaitNews reports whether the approval may have changed, because of a notification or its expiry.
func (a *Approvals) awaitNews(
	ctx context.Context, found Approval, news <-chan struct{}, deadline <-chan time.Time,
) bool {
	expiry := time.NewTimer(time.Duration(found.ExpiresAt-a.currentTime()+1) * time.Millisecond)
	defer expiry.Stop()
	select {
	case <-news:
		return true
	case <-expiry.C:
		return true
	case <-deadline:
	case <-ctx.Done():
	}
	return false
}

// findTrusted is findIn for a ledger whose records may be trusted.
func (a *Approvals) findTrusted(ctx context.Context, t id.Tenant, name ID, may whose) (Approval, error) {
	s, err := a.ledgers.State(ctx, t)
	if err == nil {
		err = s.Trusted()
	}
	if err != nil {
		return Approval{}, err
	}
	return a.findIn(ctx, s, name, may)
}

// findIn reads an approval with its current status. If that is not recorded yet, Sweep records it.
func (a *Approvals) findIn(ctx context.Context, s *log.State, name ID, may whose) (Approval, error) {
	t := s.Identity().Tenant
	j, err := a.newJudge(ctx, s)
	if err != nil {
		return Approval{}, err
	}
	r, err := a.readApproval(ctx, t, name)
	if err == nil {
		err = may(ctx, s, &r.Value)
	}
	if err != nil {
		return Approval{}, err
	}
	status, err := j.findStatus(ctx, name, &r.Value)
	if err != nil {
		return Approval{}, err
	}
	if status != r.Value.Status {
		a.doubts.addDoubt(t, name)
	}
	return r.Value.toApproval(name, status), nil
}
