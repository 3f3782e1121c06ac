package witness

import (
	"context"
	"net/http"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/wait"
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
	failed       result = "failed"       // an answer that says nothing about other logs: 5xx, or none of the protocol's
	unwell       result = "unwell"       // no answer, 429, 503 with Retry-After
	contradicted result = "contradicted" // it knows a tree that ours does not extend
	gone         result = "gone"         // we stop, or could not make the proof
	skipped      result = "skipped"      // it was not asked: it rests
	smaller      result = "smaller"      // it holds a smaller tree than the one that it was to confirm
)

// trouble is why a witness did not answer as it should, for the operator: a class of
// egress, or an HTTP status.
type trouble struct {
	class  egress.Class
	status int
}

// answered is what came of an ask.
type answered struct {
	result  result
	lines   map[string]tlog.Signature // of cosigned, by WitnessKey.Identity
	reason  string                    // of contradicted
	wait    time.Duration             // that the witness asked for
	trouble trouble                   // of unwell and failed
}

// ask is one asking of one endpoint about one checkpoint.
type ask struct {
	w        *Witnesses
	endpoint *endpoint
	state    *log.State
	shown    tlog.Checkpoint // of state
	old      id.Index        // that the witness has, as far as is known
	guessed  bool            // old is our size, and nobody said that the witness has it
	exact    bool            // it is to confirm the tree that it has, and not to extend it
	claim    string          // what it claimed last against us
}

// run calls the witness up to maxTries times.
func (a *ask) run(ctx context.Context) answered {
	var last answered
	for n := range maxTries {
		if n > 0 && last.result != "" && wait.For(ctx, jittered(250*time.Millisecond<<n)) != nil {
			return answered{result: gone}
		}
		answer, ended := a.once(ctx)
		if ended {
			return answer
		}
		last = answer
	}
	if last.result == "" { // conflicts without an end
		last.result = failed
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
	answer, err := a.w.Client.Post(ctx, a.endpoint.address, header, body)
	a.w.metrics.call(a.endpoint.lane.label, answer.Status, time.Since(began))
	if ctx.Err() != nil {
		return answered{result: gone}, true
	}
	if err != nil {
		return a.unanswered(err)
	}
	return a.read(ctx, answer)
}

// unanswered tells what the error of a call means.
func (a *ask) unanswered(err error) (answered, bool) {
	class := egress.ClassOf(err)
	a.w.metrics.unanswered(a.endpoint.lane.label, class)
	a.w.Logger.Debug("witness not reached", "witness", a.endpoint.name(), "err", err)
	if class == egress.ClassTooLarge {
		return answered{result: failed, trouble: trouble{class: class}}, true
	}
	return answered{result: unwell, trouble: trouble{class: class}}, false
}
