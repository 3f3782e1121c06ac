package witness

import (
	"context"
	"fmt"
	"net/http"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/http/header"
)

// classifyAnswer returns the outcome of a response, and reports whether it is final.
//
// A 5xx is attributed to this log and not to the witness, because some witnesses respond with 500 for an unknown log.
// It is not retried within the submission.
func (a *submission) classifyAnswer(ctx context.Context, answer egress.Answer) (outcome, bool) {
	wait := header.RetryAfter(answer.Header, a.w.Clock())
	cause := failureCause{status: answer.Status}
	switch answer.Status {
	case http.StatusOK:
		return a.readCosignatures(answer), true
	case http.StatusConflict:
		return a.resolveConflict(ctx, answer)
	case http.StatusUnprocessableEntity:
		if a.old == 0 { // there was no proof that could be wrong
			return outcome{result: failed, cause: cause}, true
		}
		return a.confirmContradiction(fmt.Sprintf(
			"witness %s rejects the consistency proof from size %d to %d: it has a different root",
			a.endpoint.displayName(), a.old, a.shown.Size))
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound:
		return outcome{result: refused, wait: wait}, true
	}
	switch overloaded := answer.Status == http.StatusTooManyRequests; {
	case overloaded && wait == 0:
		return outcome{result: busy, cause: cause}, true
	case overloaded, answer.Status == http.StatusServiceUnavailable && wait > 0:
		return outcome{result: unwell, wait: wait, cause: cause}, true
	}
	return outcome{result: failed, wait: wait, cause: cause}, true
}

// readCosignatures reads a 200. Only lines that verify under a configured key count.
func (a *submission) readCosignatures(answer egress.Answer) outcome {
	lines := a.endpoint.cosignaturesIn(answer.Body, a.shown.Text())
	if len(lines) == 0 {
		return outcome{result: unverified}
	}
	return outcome{result: cosigned, lines: lines}
}

// resolveConflict handles a 409: the witness has another size than the old size, or another root at the size of the
// checkpoint.
func (a *submission) resolveConflict(ctx context.Context, answer egress.Answer) (outcome, bool) {
	size, found := conflictSize(answer)
	switch {
	case a.old == a.shown.Size && (!found && !a.guessed || found && size == a.old):
		return a.confirmContradiction(
			fmt.Sprintf("witness %s has a different root at size %d", a.endpoint.displayName(), a.old))
	case !found || size == a.old:
		return outcome{result: failed, cause: failureCause{status: answer.Status}}, true
	case size > a.shown.Size:
		return a.resolveLargerSize(ctx, size)
	case a.exact:
		return outcome{result: smaller}, true
	}
	a.old, a.guessed = size, false
	return outcome{}, false
}

// resolveLargerSize handles a witness that has cosigned a larger checkpoint than the submitted one. It may be a newer
// checkpoint of this ledger.
func (a *submission) resolveLargerSize(ctx context.Context, size id.Index) (outcome, bool) {
	now, err := a.w.Ledgers.State(ctx, a.state.Identity().Tenant)
	if err != nil {
		return outcome{result: gone}, true
	}
	if size <= now.Size() {
		return outcome{result: behind}, true
	}
	return a.confirmContradiction(fmt.Sprintf("witness %s has cosigned size %d, but the head has size %d",
		a.endpoint.displayName(), size, now.Size()))
}

// confirmContradiction accepts a contradiction only if the witness repeats it, because the service cannot undo a
// freeze.
func (a *submission) confirmContradiction(claim string) (outcome, bool) {
	confirmed := a.claim == claim
	a.claim = claim
	if confirmed {
		return outcome{result: contradicted, reason: claim}, true
	}
	return outcome{result: failed}, false
}
