package witness

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/egress"
	"github.com/agentledger/agentledger/internal/retryafter"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/tlog"
)

// maxTries is how often one ask may call.
const maxTries = 3

// result is how an ask ended.
type result string

const (
	cosigned     result = "cosigned"
	behind       result = "behind"       // the witness has seen a newer checkpoint of ours
	refused      result = "refused"      // 400, 403, 404: it does not want this log, or this key
	unverified   result = "unverified"   // 200 without a cosignature of the key
	unwell       result = "unwell"       // no answer, 429, 5xx, or one that is none of the protocol's
	contradicted result = "contradicted" // it knows a tree that ours does not extend
	gone         result = "gone"         // we stop, or could not make the proof
	skipped      result = "skipped"      // it was not asked: it rests
)

// answered is what came of an ask.
type answered struct {
	result    result
	signature tlog.Signature // of cosigned
	reason    string         // of contradicted
	wait      time.Duration  // that the witness asked for
}

// ask is one asking of one witness about one checkpoint.
type ask struct {
	w      *Witnesses
	target *target
	state  *log.State
	shown  tlog.Checkpoint // of state
	old    id.Index        // that the witness has, as far as is known
	claim  string          // what it claimed last against us
}

// run calls the witness up to tries times.
func (a *ask) run(ctx context.Context, tries int) answered {
	var last answered
	for n := range tries {
		if n > 0 && last.result == unwell && !sleep(ctx, jittered(250*time.Millisecond<<n)) {
			return answered{result: gone}
		}
		answer, ended := a.once(ctx)
		if ended {
			return answer
		}
		last = answer
	}
	if last.result == "" { // conflicts without an end
		last.result = unwell
	}
	return last
}

// once calls the witness and reports whether there is nothing more to try.
func (a *ask) once(ctx context.Context) (answered, bool) {
	if a.old > a.shown.Size {
		a.old = 0 // the hint is of no use: learn it from the witness
	}
	_, _, proof, err := a.w.Ledgers.Consistency(ctx, a.state, a.old, a.shown.Size)
	if err != nil {
		a.w.Logger.Error("no proof for a witness", "origin", a.shown.Origin, "err", err)
		return answered{result: gone}, true
	}
	body := addCheckpoint(a.old, proof, a.state.Checkpoint())
	header := http.Header{"Content-Type": {"text/plain; charset=utf-8"}}
	began := time.Now()
	answer, err := a.w.Client.Post(ctx, addressOf(a.target.URL), header, body)
	a.w.metrics.call(a.target.lane.label, answer.Status, time.Since(began))
	if ctx.Err() != nil {
		return answered{result: gone}, true
	}
	if err != nil {
		a.w.Logger.Debug("witness not reached", "witness", a.target.Key.Name(), "err", err)
		return answered{result: unwell}, false
	}
	return a.read(ctx, answer)
}

// read tells what an answer means.
func (a *ask) read(ctx context.Context, answer egress.Answer) (answered, bool) {
	wait := retryafter.Of(answer.Header, a.w.Clock())
	switch status := answer.Status; {
	case status == http.StatusOK:
		s, ok := cosignatureIn(answer.Body, a.target.Key, a.shown.Text())
		if !ok {
			return answered{result: unverified}, true
		}
		return answered{result: cosigned, signature: s}, true
	case status == http.StatusConflict:
		return a.conflict(ctx, answer)
	case status == http.StatusUnprocessableEntity:
		if a.old == 0 {
			return answered{result: unwell}, true // there was no proof that could be wrong
		}
		return a.contradiction(fmt.Sprintf("witness %s refuses the consistency proof from size %d to %d: it has another root", a.target.Key.Name(), a.old, a.shown.Size))
	case status == http.StatusBadRequest || status == http.StatusForbidden || status == http.StatusNotFound:
		return answered{result: refused, wait: wait}, true
	case status >= 500 && wait == 0:
		return answered{result: unwell}, false
	}
	return answered{result: unwell, wait: wait}, true
}

// conflict reads a 409: the witness has another size than the old one, or at the
// size of the checkpoint another root.
func (a *ask) conflict(ctx context.Context, answer egress.Answer) (answered, bool) {
	size, told := conflictSize(answer)
	switch {
	case a.old == a.shown.Size && (!told || size == a.old):
		return a.contradiction(fmt.Sprintf("witness %s has another root at size %d", a.target.Key.Name(), a.old))
	case !told || size == a.old:
		return answered{result: unwell}, true
	case size > a.shown.Size:
		return a.larger(ctx, size)
	}
	a.old = size
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
	return a.contradiction(fmt.Sprintf("witness %s has cosigned size %d, and the head is at %d", a.target.Key.Name(), size, now.Size()))
}

// contradiction counts when the witness says the same twice in a row: what it
// sets off can't be taken back.
func (a *ask) contradiction(claim string) (answered, bool) {
	confirmed := a.claim == claim
	a.claim = claim
	if confirmed {
		return answered{result: contradicted, reason: claim}, true
	}
	return answered{result: unwell}, false
}

// sleep reports whether it came to its end.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
