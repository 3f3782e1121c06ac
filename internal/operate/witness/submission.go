package witness

import (
	"context"
	"net/http"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/tlog"
)

// maxTries bounds the calls of one submission.
const maxTries = 3

// result is the result of a submission.
type result string

const (
	cosigned     result = "cosigned"
	behind       result = "behind"       // the witness has seen a newer checkpoint of this ledger
	refused      result = "refused"      // 400, 403, 404: the witness rejects this log or this key
	unverified   result = "unverified"   // 200 without a cosignature of the key
	failed       result = "failed"       // failure only for this log: 5xx, or a response that violates the protocol
	unwell       result = "unwell"       // no response, 429 or 503 with Retry-After, or 429 without other calls in flight
	busy         result = "busy"         // 429 without Retry-After, while other calls were in flight
	contradicted result = "contradicted" // the witness has seen a tree that the ledger does not extend
	gone         result = "gone"         // the service stops, or could not compute the proof
	skipped      result = "skipped"      // no request, because the witness is paused
	smaller      result = "smaller"      // the witness has a smaller tree than the one to confirm
)

// failureCause is the cause of a failure, for the operator: an egress.Class or an HTTP status.
type failureCause struct {
	class  egress.Class
	status int
}

// outcome is the result of a submission, with details.
type outcome struct {
	result result
	lines  map[string]tlog.Signature // for cosigned, by WitnessKey.Identity
	reason string                    // for contradicted
	wait   time.Duration             // the pause that the witness requested
	cause  failureCause              // of unwell and failed
}

// submission is one submission of one checkpoint to one endpoint, with retries.
type submission struct {
	w        *Witnesses
	endpoint *endpoint
	state    *log.State
	shown    tlog.Checkpoint // of state
	old      id.Index        // the last known size of the witness
	guessed  bool            // old is the size of the ledger, but the witness may have another one
	exact    bool            // the witness must confirm the tree that it has, and not extend it
	claim    string          // the last contradiction that the witness reported
}

// submitWithRetries calls the witness up to maxTries times.
func (a *submission) submitWithRetries(ctx context.Context) outcome {
	var last outcome
	for n := range maxTries {
		if n > 0 && last.result != "" && syncs.Sleep(ctx, withJitter(250*time.Millisecond<<n)) != nil {
			return outcome{result: gone}
		}
		answer, ended := a.submitOnce(ctx)
		if ended {
			return answer
		}
		last = answer
	}
	if last.result == "" { // only conflicts
		last.result = failed
	}
	return last
}

// submitOnce calls the witness once, and reports whether the outcome is final.
func (a *submission) submitOnce(ctx context.Context) (outcome, bool) {
	if a.old > a.shown.Size {
		a.old = 0 // the hint is wrong: the witness will respond with its size
	}
	_, _, proof, err := a.w.Ledgers.Consistency(ctx, a.state, a.old, a.shown.Size)
	if err != nil {
		a.w.Logger.Error("no proof for a witness", "origin", a.shown.Origin, "err", err)
		return outcome{result: gone}, true
	}
	body := addCheckpointBody(a.old, proof, a.state.Checkpoint())
	header := http.Header{"Content-Type": {"text/plain; charset=utf-8"}}
	began := time.Now()
	answer, err := a.w.Client.Post(ctx, a.endpoint.address, header, body)
	a.w.metrics.observeCall(a.endpoint.breaker.label, answer.Status, time.Since(began))
	if ctx.Err() != nil {
		return outcome{result: gone}, true
	}
	if err != nil {
		return a.classifyCallError(err)
	}
	return a.classifyAnswer(ctx, answer)
}

// classifyCallError returns the outcome of a call without a response.
func (a *submission) classifyCallError(err error) (outcome, bool) {
	class := egress.ClassifyError(err)
	a.w.metrics.countUnanswered(a.endpoint.breaker.label, class)
	a.w.Logger.Debug("witness not reached", "witness", a.endpoint.displayName(), "err", err)
	if class == egress.ClassTooLarge {
		return outcome{result: failed, cause: failureCause{class: class}}, true
	}
	return outcome{result: unwell, cause: failureCause{class: class}}, false
}
