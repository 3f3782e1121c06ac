package runs

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/agentledger/agentledger/client"
)

// Do reports a step under its key, and the end of the step under the key with resultSuffix.
const (
	stepStarted   = "started"
	stepSucceeded = "succeeded"
	stepFailed    = "failed"
	stepSkipped   = "skipped"

	resultSuffix = ".result"
	resultKind   = "result"
)

// progress is the part of a run's record in the ledger that Do needs.
type progress struct {
	mu       sync.Mutex
	attempts map[string]int  // highest attempt by key
	done     map[string]bool // keys of the steps that succeeded
}

func (p *progress) addReportedSteps(steps ...Step) {
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

// nextAttempt returns the number of a step's next attempt, and whether the step has already
// succeeded.
func (p *progress) nextAttempt(key string) (attempt int, done bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.attempts[key] + 1, p.done[key]
}

func (r *Run) loadProgress(ctx context.Context) error {
	for e, err := range r.Events(ctx) {
		if err != nil {
			return err
		}
		if e.Key != "" {
			r.progress.addReportedSteps(Step{Key: e.Key, Attempt: e.Attempt, Status: e.Status})
		}
	}
	return nil
}

// Do executes a step of the run. It reports that the step is started, calls do if the policy allows
// the step, and reports the result under the key `<key>.result` with the kind result. Do sets
// Status and Attempt of the step.
//
// A step that has succeeded is not executed again, even after a restart; done is then true as well.
// A step that failed, was denied or was interrupted is executed again as its next attempt, so a
// function can run again after it was killed. Use package guard if that must not happen. One
// attempt consumes Step.Approval: another attempt needs another approval.
//
// Errors are a *client.DeniedError, the error of do unchanged, and those of Report. Two calls for
// one key MUST NOT overlap.
func (r *Run) Do(ctx context.Context, s Step, do func(context.Context) error) (done bool, err error) {
	attempt, known := r.progress.nextAttempt(s.Key)
	if known {
		return true, nil
	}
	s.Status, s.Attempt = stepStarted, attempt
	reported, err := r.Report(ctx, s)
	if err != nil {
		return false, err
	}
	result := Step{Key: s.Key + resultSuffix, Attempt: attempt, Kind: resultKind, Status: stepSucceeded}
	var failed error
	if d := reported[0]; !d.MayProceed() {
		decision := client.Decision{Decision: d.Decision, PolicyID: d.PolicyID, RuleID: d.RuleID, Reason: d.Reason}
		failed = &client.DeniedError{Reason: d.Reason, Decision: decision}
		result.Status = stepSkipped
	} else if failed = do(ctx); failed != nil {
		result.Status = stepFailed
	}
	if _, err := r.Report(ctx, result); err != nil {
		return failed == nil, errors.Join(failed, err)
	}
	return failed == nil, failed
}
