package witness

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/internal/test/witnesstest"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// counter is a set of witnesses without a network: it cosigns every checkpoint and counts the calls.
type counter struct {
	signer tlog.WitnessSigner
	others []tlog.WitnessSigner // sign together with it
	pause  time.Duration        // duration of each call
	closed <-chan struct{}      // calls wait until it is closed; nil: they do not wait
	able   int                  // it answers 429 while more calls than this are in flight; 0: never

	mu          sync.Mutex
	calls       map[id.Origin]int
	under, most int
	busy        int // number of answers 429
}

func newCounter(t testing.TB) *counter {
	return &counter{signer: testSigner(t, "x.example"), calls: map[id.Origin]int{}, pause: time.Millisecond}
}

func (c *counter) policy() *trust.Policy {
	return &trust.Policy{Witnesses: []trust.Witness{{Name: "x", Key: c.signer.Key(), URL: "https://x.example"}}, Quorum: "x"}
}

// Post implements Client.
func (c *counter) Post(_ context.Context, _ string, _ http.Header, body []byte) (egress.Answer, error) {
	r, err := witnesstest.ParseRequest(body)
	if err != nil {
		return egress.Answer{Status: http.StatusBadRequest}, nil
	}
	c.mu.Lock()
	c.calls[r.Checkpoint.Origin]++
	c.under++
	c.most = max(c.most, c.under)
	busy := c.able > 0 && c.under > c.able
	if busy {
		c.busy++
	}
	c.mu.Unlock()
	time.Sleep(c.pause)
	if c.closed != nil {
		<-c.closed
	}
	c.mu.Lock()
	c.under--
	c.mu.Unlock()
	if busy {
		return egress.Answer{Status: http.StatusTooManyRequests}, nil
	}
	lines := []tlog.Signature{c.signer.Cosign(r.Checkpoint.Text(), testTime)}
	for _, other := range c.others {
		lines = append(lines, other.Cosign(r.Checkpoint.Text(), testTime))
	}
	return egress.Answer{Status: http.StatusOK, Body: witnesstest.SignatureLines(lines...)}, nil
}

func (c *counter) total() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, calls := range c.calls {
		n += calls
	}
	return n
}

// crowd adds organizations to a world and returns all tenants.
func (w *world) crowd(n int) []id.Tenant {
	all := []id.Tenant{red, blue}
	for i := range n {
		tenant := id.Tenant(100 + i)
		w.found(tenant, id.Slug(fmt.Sprint("org-", i)), "")
		all = append(all, tenant)
	}
	return all
}

// Of many organizations, those that moved are asked about, each a few times however often it moved, and a bounded
// number at a time. In the end, none of them remains in memory.
func TestManyOrganizations(t *testing.T) {
	w := newWorld(t)
	c := newCounter(t)
	all := w.crowd(100)
	moving := all[:50]
	base := runtime.NumGoroutine()
	w.start("", func(o *Options) { o.Client, o.Service, o.Interval = c, c.policy(), 100*time.Millisecond })
	began := time.Now()
	for range 10 {
		for _, tenant := range moving {
			w.append(tenant)
		}
	}
	took := time.Since(began)
	for _, tenant := range moving {
		w.eventually("cosigned", func() bool { return w.cosignedNow(tenant, c) })
	}
	c.mu.Lock()
	for _, tenant := range all {
		calls, moved := c.calls[ledgertest.Origin(tenant)], tenant == red || tenant == blue || int(tenant) < 100+48
		if most := 2 + int(took/(100*time.Millisecond)); moved != (calls > 0) || calls > most {
			t.Errorf("%d: got %d calls, at most %d", tenant, calls, most)
		}
	}
	if c.most > serviceCalls {
		t.Errorf("%d calls at a time", c.most)
	}
	c.mu.Unlock()
	w.eventually("nothing is left", w.idle)
	w.eventually("no goroutine is left", func() bool { return runtime.NumGoroutine() <= base+4 })
	calls := c.total()
	w.pass(0)
	w.eventually("nothing is left", w.idle)
	if c.total() != calls {
		t.Error("a sweep asks about what is cosigned")
	}
}

func (w *world) cosignedNow(tenant id.Tenant, c *counter) bool {
	w.t.Helper()
	note, err := w.witnesses.Checkpoint(w.t.Context(), w.State(w.t, tenant))
	if err != nil {
		w.t.Fatal(err)
	}
	n, err := tlog.ParseNote(note)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = c.signer.Key().Cosigned(n)
	return err == nil
}

// What does not fit into the queue is dropped, reported, and found again.
func TestOverflowIsFoundAgain(t *testing.T) {
	w := newWorld(t)
	c := newCounter(t)
	open := make(chan struct{})
	c.closed = open // so that the queue stays full until all have moved
	all := w.crowd(60)
	w.start("", func(o *Options) { o.Client, o.Service, o.Pending, o.Rounds = c, c.policy(), 8, 4 })
	for _, tenant := range all {
		w.append(tenant)
	}
	close(open)
	w.eventually("nothing is left", w.idle)
	if w.metric("agentledger_witness_overflow_total", "") == 0 {
		t.Error("everything found room")
	}
	w.pass(0)
	for _, tenant := range all {
		w.eventually("cosigned", func() bool { return w.cosignedNow(tenant, c) })
	}
}

// A witness that answers busy to more than one concurrent call, as some do because of SQLite, gets fewer calls at a
// time. It is not paused for the other logs, and cosigns all.
func TestBusyWitnessIsAskedLess(t *testing.T) {
	w := newWorld(t)
	c := newCounter(t)
	c.able = 1
	all := w.crowd(100)
	w.start("", func(o *Options) { o.Client, o.Service = c, c.policy() })
	for _, tenant := range all {
		w.append(tenant)
	}
	for _, tenant := range all {
		w.eventually("cosigned", func() bool { return w.cosignedNow(tenant, c) })
	}
	if paused := w.asks(unwell) + w.asks(skipped); paused > 0 {
		t.Errorf("%d submissions found the witness paused", paused)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy == 0 || c.most < 2 {
		t.Errorf("it was busy %d times, with %d calls at most", c.busy, c.most)
	}
}
