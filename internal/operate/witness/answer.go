package witness

import (
	"context"
	"fmt"
	"net/http"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/http/header"
)

// classifyAnswer returns the outcome of an answer, and whether it is final.
//
// A 5xx is about this log and not about the witness, because some witnesses answer 500
// to an unknown log. It is not retried within the submission.
func (a *submission) classifyAnswer(ctx context.Context, answer egress.Answer) (outcome, bool) {
	wait := header.RetryAfter(answer.Header, a.w.Clock())
	told := failureCause{status: answer.Status}
	switch answer.Status {
	case http.StatusOK:
		return a.readCosignatures(answer), true
	case http.StatusConflict:
		return a.resolveConflict(ctx, answer)
	case http.StatusUnprocessableEntity:
		if a.old == 0 { // there was no proof that could be wrong
			return outcome{result: failed, cause: told}, true
		}
		return a.confirmContradiction(fmt.Sprintf(
			"witness %s refuses the consistency proof from size %d to %d: it has another root",
			a.endpoint.displayName(), a.old, a.shown.Size))
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound:
		return outcome{result: refused, wait: wait}, true
	}
	switch overloaded := answer.Status == http.StatusTooManyRequests; {
	case overloaded && wait == 0:
		return outcome{result: busy, cause: told}, true
	case overloaded, answer.Status == http.StatusServiceUnavailable && wait > 0:
		return outcome{result: unwell, wait: wait, cause: told}, true
	}
	return outcome{result: failed, wait: wait, cause: told}, true
}

// readCosignatures reads a 200. Only lines that verify under a configured key count.
func (a *submission) readCosignatures(answer egress.Answer) outcome {
	lines := a.endpoint.cosignaturesIn(answer.Body, a.shown.Text())
	if len(lines) == 0 {
		return outcome{result: unverified}
	}
	return outcome{result: cosigned, lines: lines}
}

// resolveConflict reads a 409. The witness has another size than the old size, or
// another root at the size of the checkpoint.
func (a *submission) resolveConflict(ctx context.Context, answer egress.Answer) (outcome, bool) {
	size, told := conflictSize(answer)
	switch {
	case a.old == a.shown.Size && (!told && !a.guessed || told && size == a.old):
		return a.confirmContradiction(
			fmt.Sprintf("witness %s has another root at size %d", a.endpoint.displayName(), a.old))
	case !told || size == a.old:
		return outcome{result: failed, cause: failureCause{status: answer.Status}}, true
	case size > a.shown.Size:
		return a.resolveLargerSize(ctx, size)
	case a.exact:
		return outcome{result: smaller}, true
	}
	a.old, a.guessed = size, false
	return outcome{}, false
}

// resolveLargerSize handles a witness that has cosigned a larger checkpoint than the
// submitted one, which may be a newer one of this ledger.
func (a *submission) resolveLargerSize(ctx context.Context, size id.Index) (outcome, bool) {
	now, err := a.w.Ledgers.State(ctx, a.state.Identity().Tenant)
	if err != nil {
		return outcome{result: gone}, true
	}
	if size <= now.Size() {
		return outcome{result: behind}, true
	}
	return a.confirmContradiction(fmt.Sprintf("witness %s has cosigned size %d, and the head is at %d",
		a.endpoint.displayName(), size, now.Size()))
}

// confirmContradiction accepts a contradiction only when the witness repeats it,
// because a freeze can't be undone by the service.
func (a *submission) confirmContradiction(claim string) (outcome, bool) {
	confirmed := a.claim == claim
	a.claim = claim
	if confirmed {
		return outcome{result: contradicted, reason: claim}, true
	}
	return outcome{result: failed}, false
}
