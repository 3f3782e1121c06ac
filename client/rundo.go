package client

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/agentledger/agentledger/id"
)

// What Do reports: the step itself, and under another key what became of it.
const (
	stepStarted   = "started"
	stepSucceeded = "succeeded"
	stepFailed    = "failed"
	stepSkipped   = "skipped"

	resultSuffix = ".result"
	resultKind   = "result"
)

// progress is what is known to be in the ledger of the steps that Do reports.
type progress struct {
	mu       sync.Mutex
	attempts map[string]int  // highest attempt by key
	done     map[string]bool // keys of steps that have succeeded
}

// note takes what was recorded.
func (p *progress) note(steps ...Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.attempts == nil {
		p.attempts, p.done = make(map[string]int), make(map[string]bool)
	}
	for _, s := range steps {
		p.attempts[s.Key] = max(p.attempts[s.Key], s.Attempt, 1)
		if key, ok := strings.CutSuffix(s.Key, resultSuffix); ok && s.Status == stepSucceeded {
			p.done[key] = true
		}
	}
}

// next returns whether a step has succeeded, and else the number of the next attempt.
func (p *progress) next(key string) (attempt int, done bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.attempts[key] + 1, p.done[key]
}

// catchUp reads what was recorded of a run that was there before.
func (r *Run) catchUp(ctx context.Context) error {
	for e, err := range r.Events(ctx) {
		if err != nil {
			return err
		}
		if e.Key != "" {
			r.progress.note(Step{Key: e.Key, Attempt: e.Attempt, Status: e.Status})
		}
	}
	return nil
}

// Do does a step of the run: it reports that the step is started, does it if the policy
// allows that, and reports under the key `<key>.result`, of kind result, what became of
// it. A step that has succeeded is not done again, neither by the same Run nor by one
// that was found again after a restart; done is true for it too. One that failed, was
// refused or was cut off is tried once more, as its next attempt: so a function that is
// killed may run again, and where that must not be a Guard does it.
//
// What the policy does not allow is a *DeniedError, and an error of the function is
// returned as it is. Two calls for one key at a time are the caller's mistake. Status and
// Attempt of the step are set here.
func (r *Run) Do(ctx context.Context, s Step, do func(context.Context) error) (done bool, err error) {
	attempt, known := r.progress.next(s.Key)
	if known {
		return true, nil
	}
	s.Status, s.Attempt = stepStarted, attempt
	told, err := r.Report(ctx, s)
	if err != nil {
		return false, err
	}
	result := Step{Key: s.Key + resultSuffix, Attempt: attempt, Kind: resultKind, Status: stepSucceeded}
	var failed error
	if d := told[0]; d.Decision != id.Allow {
		failed = &DeniedError{Reason: d.Reason, Decision: Decision{Decision: d.Decision, PolicyID: d.PolicyID, RuleID: d.RuleID, Reason: d.Reason}}
		result.Status = stepSkipped
	} else if failed = do(ctx); failed != nil {
		result.Status = stepFailed
	}
	if _, err := r.Report(ctx, result); err != nil {
		return failed == nil, errors.Join(failed, err)
	}
	return failed == nil, failed
}
