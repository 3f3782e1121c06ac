package nodes_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/tlog"
)

// upgradePace is the time between two calls of a client.
const upgradePace = 15 * time.Millisecond

// upgradeLoad consists of senders and readers of two organizations, who use the nodes in turn.
type upgradeLoad struct {
	t             *testing.T
	nodes         []*upgraded
	organizations []*servicetest.Organization
	turn          atomic.Uint64
	tolerant      atomic.Bool // a second failure is no longer an error
	stop          func()

	mu           sync.Mutex
	clients      map[string]*client.Client
	acknowledged map[string][]client.Result // by slug
	sizes        map[string]int64           // of the latest head, by slug
	longest      time.Duration
	repeated     int
}

func startUpgradeLoad(t *testing.T, nodes []*upgraded) *upgradeLoad {
	t.Helper()
	first := servicetest.At(t, nodes[0].main, nodes[0].identity)
	l := &upgradeLoad{t: t, nodes: nodes, clients: map[string]*client.Client{}, sizes: map[string]int64{},
		acknowledged: map[string][]client.Result{}, organizations: []*servicetest.Organization{
			first.Found("Red", "red", "ann@red.example"), first.Found("Blue", "blue", "bob@blue.example")}}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() { l.send(ctx, l.organizations[i%2], fmt.Sprint("u", i)) })
	}
	for _, o := range l.organizations {
		group.Go(func() { l.read(ctx, o) })
	}
	l.stop = sync.OnceFunc(func() {
		cancel()
		group.Wait()
	})
	t.Cleanup(l.stop)
	l.awaitProgress()
	return l
}

// clientOf returns a client of a node. Node numbers wrap around.
func (l *upgradeLoad) clientOf(node uint64, o *servicetest.Organization) *client.Client {
	main := l.nodes[node%uint64(len(l.nodes))].main
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.clients[main+o.Slug]
	if c == nil {
		var err error
		c, err = client.New(client.Config{BaseURL: main, Token: o.IngestKey.Secret, Timeout: 10 * time.Second,
			Retry: client.Retry{Attempts: 1}})
		if err != nil {
			l.t.Error(err)
		}
		l.clients[main+o.Slug] = c
	}
	return c
}

// once makes a call at the next node in turn, and retries a failure once at the node after that.
func (l *upgradeLoad) once(ctx context.Context, what string, call func(node uint64) error) {
	node := l.turn.Add(1)
	err := call(node)
	var why []string
	for tries := 1; err != nil && ctx.Err() == nil; tries++ {
		why = append(why, fmt.Sprintf("node %d: %v", node%uint64(len(l.nodes)), err))
		if tries > 1 && !l.tolerant.Load() || tries > 100 {
			l.t.Errorf("%s failed %d times, last %q", what, tries, why[max(0, len(why)-2):])
			return
		}
		l.mu.Lock()
		l.repeated++
		l.mu.Unlock()
		node++
		err = call(node)
	}
}

func (l *upgradeLoad) send(ctx context.Context, o *servicetest.Organization, prefix string) {
	for n := 0; ctx.Err() == nil; n++ {
		name := fmt.Sprintf("%s-%d", prefix, n)
		envelope, began := o.Sign(name, nil), time.Now()
		l.once(ctx, name, func(node uint64) error {
			r, err := l.clientOf(node, o).Send(context.WithoutCancel(ctx), envelope)
			if err == nil {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.acknowledged[o.Slug] = append(l.acknowledged[o.Slug], r)
				l.longest = max(l.longest, time.Since(began))
			}
			return err
		})
		time.Sleep(upgradePace)
	}
}

// read reads the head, which is never smaller than an earlier one.
func (l *upgradeLoad) read(ctx context.Context, o *servicetest.Organization) {
	for ; ctx.Err() == nil; time.Sleep(upgradePace) {
		l.once(ctx, "head of "+o.Slug, func(node uint64) error {
			log, err := l.logOf(node, o)
			if err != nil {
				return err
			}
			_, head, err := log.Head(ctx)
			if err != nil {
				return err
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			if before := l.sizes[o.Slug]; int64(head.Size) < before {
				l.t.Errorf("%s: head of size %d after one of size %d", o.Slug, head.Size, before)
			}
			l.sizes[o.Slug] = int64(head.Size)
			return nil
		})
	}
}

func (l *upgradeLoad) logOf(node uint64, o *servicetest.Organization) (*client.Log, error) {
	key, err := tlog.ParseVerifierKey(o.LogKey)
	if err != nil {
		return nil, err
	}
	return l.clientOf(node, o).Log(id.Slug(o.Slug), key), nil
}

// during runs something under load, and logs the longest time of an event in the meantime.
func (l *upgradeLoad) during(what string, do func()) {
	l.t.Helper()
	l.mu.Lock()
	l.longest, l.repeated = 0, 0
	l.mu.Unlock()
	began := time.Now()
	do()
	took := time.Since(began)
	l.awaitProgress()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.t.Logf("%s: %v, the longest event %v, %d calls were repeated", what, took.Round(time.Millisecond),
		l.longest.Round(time.Millisecond), l.repeated)
}

// tolerate makes clients retry until they succeed.
func (l *upgradeLoad) tolerate() { l.tolerant.Store(true) }

// awaitProgress waits until each organization has more events.
func (l *upgradeLoad) awaitProgress() {
	l.t.Helper()
	counts := func() (n [2]int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for i, o := range l.organizations {
			n[i] = len(l.acknowledged[o.Slug])
		}
		return n
	}
	before := counts()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if now := counts(); now[0] >= before[0]+20 && now[1] >= before[1]+20 {
			return
		}
		if time.Now().After(deadline) {
			l.t.Fatal("the organizations have no new events")
		}
	}
}

// verify ends the load, and verifies that each acknowledged event is stored under its number.
func (l *upgradeLoad) verify() {
	l.t.Helper()
	l.stop()
	for _, o := range l.organizations {
		numbers, all := map[uint64]id.Event{}, l.acknowledged[o.Slug]
		for _, result := range all {
			log, err := l.logOf(l.turn.Add(1), o)
			if err != nil {
				l.t.Fatal(err)
			}
			bundle, report, err := log.Bundle(l.t.Context(), result.EventID)
			switch {
			case err != nil || !report.OK:
				l.t.Errorf("%s: acknowledged event %s: %v %+v", o.Slug, result.EventID, err, report)
				continue
			case result.Status == client.Created && bundle.SequenceNum != result.Sequence:
				l.t.Errorf("%s: %s: acknowledged as #%d, is #%d", o.Slug, result.EventID, result.Sequence, bundle.SequenceNum)
			}
			if other, twice := numbers[bundle.SequenceNum]; twice {
				l.t.Errorf("%s: %s and %s have number %d", o.Slug, result.EventID, other, bundle.SequenceNum)
			}
			numbers[bundle.SequenceNum] = result.EventID
		}
		l.t.Logf("%s: %d events acknowledged", o.Slug, len(all))
	}
}
