package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// eventually waits until a condition holds, for as long as a busy machine may need.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not so after two minutes", what)
		}
	}
}

// outcomes are the results that the callers of a world got.
type outcomes struct {
	mu               sync.Mutex
	acknowledgements acknowledgements
	later            map[id.Tenant]map[string]bool // not acknowledged; true: it may be stored
}

func (o *outcomes) add(tenant id.Tenant, name string, receipts []log.Receipt, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil {
		o.acknowledgements.acknowledged[tenant][name] = receipts[0]
	} else {
		o.later[tenant][name] = fault.Is(err, fault.OutcomeUnknown)
	}
}

// callers send events of both organizations until stop is closed, and wait a second for each.
func (w *world) callers(stop <-chan struct{}) (*outcomes, *sync.WaitGroup) {
	o := &outcomes{later: map[id.Tenant]map[string]bool{red: {}, blue: {}}}
	o.acknowledgements.acknowledged = map[id.Tenant]map[string]log.Receipt{red: {}, blue: {}}
	var all sync.WaitGroup
	for sender := range 4 {
		for _, tenant := range []id.Tenant{red, blue} {
			all.Go(func() {
				for i := 0; ; i++ {
					name := fmt.Sprintf("c-%d-%d", sender, i)
					prepare := w.prepare(tenant, name)
					ctx, cancel := context.WithTimeout(context.Background(), time.Second)
					receipts, err := w.ledgers.Append(ctx, tenant, prepare)
					cancel()
					o.add(tenant, name, receipts, err)
					select {
					case <-stop:
						return
					default:
					}
				}
			})
		}
	}
	return o, &all
}

// A server that stops responding under load blocks no caller for longer than its timeout: cached data is read, other
// reads end with their contexts, and the age of the oldest append shows the problem. When the server responds again,
// everything acknowledged is there, everything else is there once or not at all and may be sent again.
func TestStoppedServer(t *testing.T) {
	s := start(t)
	e := open(t, pgstore.Options{URL: s.URL()})
	w := newWorld(t, e)
	w.found()
	stop := make(chan struct{})
	o, callers := w.callers(stop)
	eventually(t, "events of both are acknowledged", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.acknowledgements.acknowledged[red]) > 20 && len(o.acknowledgements.acknowledged[blue]) > 20
	})
	must(t, s.Hang())
	resumed := sync.OnceFunc(func() { must(t, s.GoOn()) })
	defer resumed()
	eventually(t, "the oldest append is out for 4 s", func() bool { return w.ledgers.OldestAppend() > 4*time.Second })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	for _, tenant := range []id.Tenant{red, blue} {
		if s, err := w.ledgers.State(ctx, tenant); err != nil || s.Size() == 0 {
			t.Errorf("a state in memory: %v", err)
		}
	}
	var reads sync.WaitGroup
	for range 40 { // more than there are connections
		reads.Go(func() {
			if _, err := e.Head(ctx, red); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a read: got %v, want the end of its context", err)
			}
			if _, err := e.Lookup(ctx, red, []storage.DedupKey{{Text: "x"}}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a look-up: got %v, want the end of its context", err)
			}
			if err := e.Barrier(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a barrier: got %v, want the end of its context", err)
			}
		})
	}
	reads.Wait()
	close(stop)
	callers.Wait()
	resumed()
	eventually(t, "nothing is out", func() bool { return w.ledgers.OldestAppend() == 0 })
	for tenant, names := range o.later {
		for name := range names {
			eventually(t, "what was not acknowledged can be sent again", func() bool {
				receipts, err := w.ledgers.Append(t.Context(), tenant, w.prepare(tenant, name))
				if err == nil {
					o.acknowledgements.acknowledged[tenant][name] = receipts[0]
				}
				return err == nil || errors.Is(err, log.ErrDuplicate)
			})
		}
		want := len(o.acknowledgements.acknowledged[tenant])
		for name, unknown := range names {
			if _, again := o.acknowledgements.acknowledged[tenant][name]; !again {
				if want++; !unknown {
					t.Errorf("%s landed, and its caller was told that nothing was done", name)
				}
			}
		}
		if got := w.state(tenant).Size(); got != id.Index(want) {
			t.Errorf("tenant %d: got %d events, want %d", tenant, got, want)
		}
	}
	w.keeps(&o.acknowledgements)
	w.close()
	closeEngine(t, e)
}

// Close of an engine whose server does not respond returns, and reports what is in flight.
func TestCloseBesideAStoppedServer(t *testing.T) {
	s := start(t)
	e := open(t, pgstore.Options{URL: s.URL()})
	w := storagetest.NewWriter(1)
	wantAll(t, e.Append([]storage.Batch{w.Next(1)}).Wait(), nil)
	must(t, s.Hang())
	pending := e.Append([]storage.Batch{w.Next(1)})
	err := e.Close()
	if !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "appends in flight on 1 connections") {
		t.Errorf("got %v, want the number of appends in flight", err)
	}
	must(t, s.GoOn())
	pending.Wait() // it was not canceled; its connection may or may not have survived
}
