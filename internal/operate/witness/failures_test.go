package witness

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/internal/test/witnesstest"
)

// failsAbout makes a witness answer 500 for one log, as some do for a log that they do not know, and follow the
// protocol for the others. It returns how often the witness was asked about that log.
func failsAbout(x *witnesstest.Witness, tenant id.Tenant) (count func() int) {
	calls := make(chan struct{}, 1<<12)
	origin := string(ledgertest.Origin(tenant))
	x.WrapHandler(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if strings.Contains(string(body), origin+"\n") {
				calls <- struct{}{}
				http.Error(rw, "unknown log", http.StatusInternalServerError)
				return
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			next.ServeHTTP(rw, r)
		})
	})
	return func() int { return len(calls) }
}

// A witness that answers 500 for blue's log cosigns red's log as always: each round in which red moved is one request,
// with nothing skipped, whatever blue does.
func TestFailureIsOfOneLog(t *testing.T) {
	w := newWorld(t)
	x := w.witness("x.example")
	blues := failsAbout(x, blue)
	w.start(x.PolicyLine("x") + "quorum x\n")
	w.append(blue)
	w.eventually("blue's ask has ended", func() bool { return w.asks(failed)+w.asks(unwell) > 0 })
	const rounds = 12
	began := w.now()
	for range rounds {
		w.append(blue)
		w.append(red)
		w.eventually("red is cosigned in its next round", func() bool { return w.by(red, x) == 1 })
		w.later(2 * time.Second)
	}
	if got := w.asks(skipped) + w.asks(unwell); got != 0 {
		t.Errorf("%d asks found the witness resting, or counted against it", got)
	}
	if got := w.asks(cosigned); got != rounds {
		t.Errorf("red was cosigned %d times in %d rounds", got, rounds)
	}
	// At least 24 s have passed. The pauses of blue are 5, 10, 20 s and so on, plus or minus a quarter.
	most := 1
	for pause, passed := firstRest*3/4, w.now().Sub(began); passed > pause; pause *= 2 {
		passed -= pause
		most++
	}
	if got := blues(); got < 3 || got > most {
		t.Errorf("blue was asked about %d times, of at most %d", got, most)
	}
	x.WrapHandler(nil)
	w.later(2 * time.Hour)
	w.eventually("blue is asked about again, and cosigned", func() bool { return w.by(blue, x) == 1 })
}

// The same before the first event that a ledger accepts after loading: red's witness is asked although it has just
// failed for blue.
func TestFailureOfOneLogAtFirstEvents(t *testing.T) {
	w := newWorld(t)
	x := w.witness("x.example")
	w.start(x.PolicyLine("x") + "quorum x\n")
	w.append(red)
	w.append(blue)
	w.eventually("both are cosigned", func() bool { return w.by(red, x) == 1 && w.by(blue, x) == 1 })
	w.stop()
	failsAbout(x, blue)
	w.restore(w.Store.Reopen())
	before, _ := x.CountCalls()
	for _, tenant := range []id.Tenant{blue, red} {
		if err := w.change(tenant, "goes on"); err != nil {
			t.Errorf("tenant %d: %v", tenant, err)
		}
	}
	if calls, _ := x.CountCalls(); calls != before+2 {
		t.Errorf("got %d calls for two first events", calls-before)
	}
}
