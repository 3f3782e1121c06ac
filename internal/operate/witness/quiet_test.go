package witness

import (
	"context"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/internal/test/witnesstest"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// slowWitness cosigns every checkpoint after a while, without a network, and records the calls.
type slowWitness struct {
	signer tlog.WitnessSigner
	clock  func() time.Time

	mu         sync.Mutex
	takes      time.Duration // duration of a call
	cosigned   map[id.Origin]seenTree
	calls      map[time.Duration]int // by second
	oldest     time.Duration         // the longest time between two cosignatures of a log
	under      int
	inFlight   int // the most at a time, since begin
	goroutines int // the most at a time, since begin
}

// seenTree is the size of a tree, and when the witness cosigned it.
type seenTree struct {
	size id.Index
	at   time.Time
}

func newSlowWitness(t testing.TB, clock func() time.Time) *slowWitness {
	return &slowWitness{signer: testSigner(t, "x.example"), clock: clock, cosigned: map[id.Origin]seenTree{},
		calls: map[time.Duration]int{}}
}

func (x *slowWitness) policy() *trust.Policy {
	return &trust.Policy{Witnesses: []trust.Witness{{Name: "x", Key: x.signer.Key(), URL: "https://x.example"}}, Quorum: "x"}
}

// Post implements Client.
func (x *slowWitness) Post(_ context.Context, _ string, _ http.Header, body []byte) (egress.Answer, error) {
	r, err := witnesstest.ParseRequest(body)
	if err != nil {
		return egress.Answer{Status: http.StatusBadRequest}, nil
	}
	x.mu.Lock()
	x.calls[time.Duration(x.clock().Unix())]++
	x.under++
	x.inFlight, x.goroutines = max(x.inFlight, x.under), max(x.goroutines, runtime.NumGoroutine())
	takes := x.takes
	x.mu.Unlock()
	time.Sleep(takes)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.under--
	now := x.clock()
	if before, seen := x.cosigned[r.Checkpoint.Origin]; seen && before.size == r.Checkpoint.Size {
		x.oldest = max(x.oldest, now.Sub(before.at))
	}
	x.cosigned[r.Checkpoint.Origin] = seenTree{r.Checkpoint.Size, now}
	line := x.signer.Cosign(r.Checkpoint.Text(), id.InstantOf(now.Truncate(time.Second)))
	return egress.Answer{Status: http.StatusOK, Body: witnesstest.SignatureLines(line)}, nil
}

// begin resets the numbers, and sets the duration of a call.
func (x *slowWitness) begin(takes time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.takes, x.calls, x.oldest, x.inFlight, x.goroutines = takes, map[time.Duration]int{}, 0, 0, 0
}

// perSecond returns the number of calls, and the largest number that began in one second.
func (x *slowWitness) perSecond() (all, most int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, n := range x.calls {
		all, most = all+n, max(most, n)
	}
	return all, most
}

// isBehind returns the number of logs whose latest cosignature is older than a duration.
func (x *slowWitness) isBehind(logs []id.Tenant, since time.Time) (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, l := range logs {
		if x.cosigned[ledgertest.Origin(l)].at.Before(since) {
			n++
		}
	}
	return n
}

func (x *slowWitness) hasCosigned(l id.Tenant, size id.Index) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.cosigned[ledgertest.Origin(l)].size >= size
}

func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Thousands of quiet logs are asked about again within about an hour, at most 50 per second, with a bounded number of
// calls and goroutines and a few bytes per log. After a long stop, when all are overdue at once and the witness is
// slow, a log that moves is not delayed by them.
func TestManyQuietLedgers(t *testing.T) {
	const n = 5000
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		x := newSlowWitness(t, w.now)
		quiet := w.crowd(n)[2:]
		for _, tenant := range quiet {
			w.append(tenant)
		}
		x.begin(20 * time.Millisecond)
		before := heapInUse()
		w.start("", func(o *Options) { o.Client, o.Service, o.Interval = x, x.policy(), 0 })
		started := w.now()
		time.Sleep(10 * time.Minute)
		if behind := x.isBehind(quiet, started); behind != 0 {
			t.Fatalf("%d logs are not cosigned at first", behind)
		}

		x.begin(20 * time.Millisecond)
		held := 0
		for range 2 * 60 {
			time.Sleep(time.Minute)
			w.witnesses.queue.mu.Lock()
			held = max(held, len(w.witnesses.queue.entries))
			w.witnesses.queue.mu.Unlock()
		}
		all, most := x.perSecond()
		t.Logf("2 hours of %d quiet logs: %d calls, at most %d in a second, %d in flight, %d goroutines, %d places of the queue; "+
			"the oldest cosignature was of %s ago; %d bytes of heap for each log",
			n, all, most, x.inFlight, x.goroutines, held, x.oldest, (heapInUse()-before)/n)
		if all < n || all > 4*n || most > 51 || x.inFlight > serviceCalls || x.goroutines > 100 || held > 200 ||
			x.oldest > 65*time.Minute {
			t.Error("that is not bounded")
		}

		x.begin(500 * time.Millisecond) // 16 calls a second
		stopped := w.now()
		w.pass(5 * time.Hour)
		worst := time.Duration(0)
		for range 60 {
			w.append(red)
			moved, size := w.now(), w.State(t, red).Size()
			for !x.hasCosigned(red, size) {
				time.Sleep(50 * time.Millisecond)
			}
			worst = max(worst, w.now().Sub(moved))
			time.Sleep(5 * time.Second)
		}
		busy := w.now().Sub(stopped.Add(5 * time.Hour))
		time.Sleep(10 * time.Minute)
		if behind := x.isBehind(quiet, stopped.Add(5*time.Hour)); behind != 0 {
			t.Errorf("%d quiet logs are not cosigned again", behind)
		}
		t.Logf("after a stop: %d in flight, %d goroutines; in %s a log that moved waited for %s at most", x.inFlight, x.goroutines, busy, worst)
		if worst > 5*time.Second || x.inFlight > serviceCalls || x.goroutines > 100 {
			t.Error("quiet logs delay a log that moves")
		}
	})
}
