package nodes_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
	"github.com/agentledger/agentledger/tlog"
)

var drillRounds = flag.Int("node-rounds", 3, "how many faults the drill of three nodes has")

func TestMain(m *testing.M) { os.Exit(servicetest.Main(m)) }

// Three real nodes on one database serve senders and readers who choose any of them, while nodes are killed, stand
// still for seconds, and are stopped and started. Every acknowledged event is there with the number that it was told,
// no reader sees a log go back, heads extend each other, and fsck finds no fault.
func TestDrill(t *testing.T) {
	d := newDrill(t)
	d.awaitServing()
	work, stop := context.WithCancel(t.Context())
	defer stop()
	var group sync.WaitGroup
	for n := range 6 {
		group.Go(func() { d.send(work, d.organizations[n%2], fmt.Sprint("s", n)) })
	}
	for _, o := range d.organizations {
		group.Go(func() { d.poll(work, o) })
	}
	for round := range *drillRounds {
		time.Sleep(time.Second)
		d.fault(round)
		d.awaitProgress()
	}
	stop()
	group.Wait()
	d.verifyAll()
	for _, p := range d.processes {
		p.terminate()
	}
	for _, p := range d.processes { // each has all anchors
		p.fsck()
	}
	t.Logf("%d faults, %d events acknowledged, longest time until an event was acknowledged: %v", *drillRounds,
		d.count(), d.longest)
}

// drill is the state of a run.
type drill struct {
	t             *testing.T
	processes     []*process
	organizations []*servicetest.Organization

	mu           sync.Mutex
	clients      map[string]*client.Client             // by the address of the node, and the slug
	acknowledged map[string]map[id.Event]client.Result // by slug
	heads        map[string]tlog.Checkpoint            // the newest that a poller saw, by slug
	now          string                                // the newest fault
	longest      map[string]time.Duration              // until an event was acknowledged, by the fault before
}

func newDrill(t *testing.T) *drill {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	d := &drill{t: t, clients: map[string]*client.Client{}, acknowledged: map[string]map[id.Event]client.Result{}, heads: map[string]tlog.Checkpoint{},
		now: "none", longest: map[string]time.Duration{}}
	for range 3 {
		d.processes = append(d.processes, startProcess(t, server.URL()))
	}
	time.Sleep(2 * time.Second) // the nodes find each other, and shards move for the last time
	first := servicetest.At(t, d.processes[0].main, d.processes[0].identity)
	d.organizations = []*servicetest.Organization{
		first.Found("Red", "red", "ann@red.example"), first.Found("Blue", "blue", "bob@blue.example"),
	}
	return d
}

// anyProcess returns a random node.
func (d *drill) anyProcess() *process { return d.processes[rand.IntN(len(d.processes))] }

// send sends events until ctx ends, each to any node and again to another one until it is acknowledged.
func (d *drill) send(ctx context.Context, o *servicetest.Organization, prefix string) {
	for n := 0; ctx.Err() == nil; n++ {
		envelope := o.Sign(fmt.Sprintf("%s-%d", prefix, n), nil)
		began := time.Now()
		var failed []error // of earlier tries
		for {
			r, err := d.clientOf(d.anyProcess(), o).Send(context.WithoutCancel(ctx), envelope)
			if err == nil {
				d.note(o, r, time.Since(began), failed)
				break
			}
			failed = append(failed, fmt.Errorf("%v: %w", time.Since(began), err))
			var refused *client.Error
			if errors.As(err, &refused) && refused.Status < 500 {
				d.t.Errorf("%s-%d is refused: %v", prefix, n, err)
				return
			}
			if time.Since(began) > time.Minute {
				d.t.Errorf("%s-%d is not acknowledged in a minute: %v", prefix, n, err)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

func (d *drill) note(o *servicetest.Organization, r client.Result, took time.Duration, failed []error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.acknowledged[o.Slug] == nil {
		d.acknowledged[o.Slug] = map[id.Event]client.Result{}
	}
	d.acknowledged[o.Slug][r.EventID] = r
	if took > d.longest[d.now] {
		d.longest[d.now] = took
		if took > 500*time.Millisecond {
			d.t.Logf("%s: %s was acknowledged after %v; failures before: %v", o.Slug, r.EventID, took,
				errors.Join(failed...))
		}
	}
}

func (d *drill) clientOf(p *process, o *servicetest.Organization) *client.Client {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c, made := d.clients[p.main+o.Slug]; made {
		return c
	}
	c, err := client.New(client.Config{BaseURL: p.main, Token: o.IngestKey.Secret, Timeout: 10 * time.Second,
		Retry: client.Retry{Attempts: 1}})
	if err != nil {
		d.t.Error(err)
	}
	d.clients[p.main+o.Slug] = c
	return c
}

func (d *drill) logOf(p *process, o *servicetest.Organization) (*client.Log, error) {
	key, err := tlog.ParseVerifierKey(o.LogKey)
	if err != nil {
		return nil, err
	}
	return d.clientOf(p, o).Log(id.Slug(o.Slug), key), nil
}

// poll reads the head of an organization from any node until ctx ends. No head is smaller than one before.
func (d *drill) poll(ctx context.Context, o *servicetest.Organization) {
	for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		p := d.anyProcess()
		l, err := d.logOf(p, o)
		if err != nil {
			d.t.Error(err)
			return
		}
		_, c, err := l.Head(ctx)
		if err != nil {
			continue
		}
		d.mu.Lock()
		if before := d.heads[o.Slug]; c.Size < before.Size {
			d.t.Errorf("%s: node %s shows the head at %d after one at %d was seen", o.Slug, p.main, c.Size, before.Size)
		}
		d.heads[o.Slug] = c
		d.mu.Unlock()
	}
}

// fault does something to a node.
func (d *drill) fault(round int) {
	p := d.processes[round%len(d.processes)]
	kind := []string{"killed", "stands still", "stopped", "killed"}[round%4]
	d.mu.Lock()
	d.now = kind
	d.mu.Unlock()
	d.t.Logf("fault: %s: node %s", kind, p.main)
	switch kind {
	case "killed":
		p.kill()
		time.Sleep(time.Duration(rand.IntN(3000)) * time.Millisecond)
		p.start()
	case "stands still":
		p.pause(5 * time.Second)
	case "stopped":
		p.terminate()
		p.start()
	}
}

// awaitServing waits until every node answers for every organization.
func (d *drill) awaitServing() {
	for _, p := range d.processes {
		for _, o := range d.organizations {
			d.await("a head", func() error {
				l, err := d.logOf(p, o)
				if err == nil {
					_, _, err = l.Head(d.t.Context())
				}
				return err
			})
		}
	}
}

// awaitProgress waits until each organization has new events.
func (d *drill) awaitProgress() {
	before := d.counts()
	d.await("new events of each organization", func() error {
		for slug, n := range d.counts() {
			if n == before[slug] {
				return fmt.Errorf("%s has none", slug)
			}
		}
		return nil
	})
}

func (d *drill) await(what string, look func() error) {
	d.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		err := look()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("%s: %v", what, err)
		}
	}
}

func (d *drill) counts() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[string]int{}
	for _, o := range d.organizations {
		all[o.Slug] = len(d.acknowledged[o.Slug])
	}
	return all
}

func (d *drill) count() (n int) {
	for one := range maps.Values(d.counts()) {
		n += one
	}
	return n
}

// verifyAll verifies every acknowledged event, from any node, and that the newest head extends one that was seen.
func (d *drill) verifyAll() {
	for _, o := range d.organizations {
		l, err := d.logOf(d.anyProcess(), o)
		if err != nil {
			d.t.Fatal(err)
		}
		_, now, err := l.Head(d.t.Context())
		if err != nil {
			d.t.Fatal(err)
		}
		if _, err := l.Consistency(d.t.Context(), d.heads[o.Slug], now); err != nil {
			d.t.Errorf("%s: the head at %d is not extended: %v", o.Slug, d.heads[o.Slug].Size, err)
		}
		numbers := map[uint64]id.Event{}
		for _, name := range slices.Sorted(maps.Keys(d.acknowledged[o.Slug])) {
			d.verifyEvent(o, name, numbers)
		}
		if uint64(now.Size) < uint64(len(numbers)) {
			d.t.Errorf("%s: %d events were acknowledged, the log has %d", o.Slug, len(numbers), now.Size)
		}
	}
}

func (d *drill) verifyEvent(o *servicetest.Organization, name id.Event, numbers map[uint64]id.Event) {
	told := d.acknowledged[o.Slug][name]
	l, err := d.logOf(d.anyProcess(), o)
	if err != nil {
		d.t.Fatal(err)
	}
	bundle, report, err := l.Bundle(d.t.Context(), name)
	if err != nil {
		d.t.Errorf("%s: acknowledged event %s is gone: %v", o.Slug, name, err)
		return
	}
	if !report.OK {
		d.t.Errorf("%s: %v", name, report.Errors)
	}
	if told.Status == client.Created && (bundle.SequenceNum != told.Sequence || bundle.EventHash != told.EventHash) {
		d.t.Errorf("%s: told #%d, is #%d", name, told.Sequence, bundle.SequenceNum)
	}
	if other, twice := numbers[bundle.SequenceNum]; twice {
		d.t.Errorf("%s and %s have number %d", name, other, bundle.SequenceNum)
	}
	numbers[bundle.SequenceNum] = name
}
