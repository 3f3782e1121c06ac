package witness

import (
	"context"
	"fmt"
	"net/http"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/http/retryafter"
)

// read tells what an answer means, and whether there is nothing more to try.
//
// 5xx is about this log and not about the witness: some witnesses answer 500 to a log
// that they do not know. It is not tried again within the ask.
func (a *ask) read(ctx context.Context, answer egress.Answer) (answered, bool) {
	wait := retryafter.Of(answer.Header, a.w.Clock())
	told := trouble{status: answer.Status}
	switch answer.Status {
	case http.StatusOK:
		return a.cosigned(answer), true
	case http.StatusConflict:
		return a.conflict(ctx, answer)
	case http.StatusUnprocessableEntity:
		if a.old == 0 { // there was no proof that could be wrong
			return answered{result: failed, trouble: told}, true
		}
		return a.contradiction(fmt.Sprintf("witness %s refuses the consistency proof from size %d to %d: it has another root", a.endpoint.name(), a.old, a.shown.Size))
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound:
		return answered{result: refused, wait: wait}, true
	case http.StatusTooManyRequests:
		return answered{result: unwell, wait: wait, trouble: told}, true
	case http.StatusServiceUnavailable:
		if wait > 0 {
			return answered{result: unwell, wait: wait, trouble: told}, true
		}
	}
	return answered{result: failed, wait: wait, trouble: told}, true
}

// cosigned reads a 200: the lines that verify under a configured key count.
func (a *ask) cosigned(answer egress.Answer) answered {
	lines := a.endpoint.cosignaturesIn(answer.Body, a.shown.Text())
	if len(lines) == 0 {
		return answered{result: unverified}
	}
	return answered{result: cosigned, lines: lines}
}

// conflict reads a 409: the witness has another size than the old one, or at the
// size of the checkpoint another root.
func (a *ask) conflict(ctx context.Context, answer egress.Answer) (answered, bool) {
	size, told := conflictSize(answer)
	switch {
	case a.old == a.shown.Size && (!told && !a.guessed || told && size == a.old):
		return a.contradiction(fmt.Sprintf("witness %s has another root at size %d", a.endpoint.name(), a.old))
	case !told || size == a.old:
		return answered{result: failed, trouble: trouble{status: answer.Status}}, true
	case size > a.shown.Size:
		return a.larger(ctx, size)
	case a.exact:
		return answered{result: smaller}, true
	}
	a.old, a.guessed = size, false
	return answered{}, false
}

// larger: the witness has cosigned a larger checkpoint than it was shown now. That
// may be a newer one of ours.
func (a *ask) larger(ctx context.Context, size id.Index) (answered, bool) {
	now, err := a.w.Ledgers.State(ctx, a.state.Identity().Tenant)
	if err != nil {
		return answered{result: gone}, true
	}
	if size <= now.Size() {
		return answered{result: behind}, true
	}
	return a.contradiction(fmt.Sprintf("witness %s has cosigned size %d, and the head is at %d", a.endpoint.name(), size, now.Size()))
}

// contradiction counts when the witness says the same twice in a row: what it
// sets off can't be taken back.
func (a *ask) contradiction(claim string) (answered, bool) {
	confirmed := a.claim == claim
	a.claim = claim
	if confirmed {
		return answered{result: contradicted, reason: claim}, true
	}
	return answered{result: failed}, false
}
