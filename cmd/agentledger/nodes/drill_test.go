package nodes_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/nodestest"
	"github.com/agentledger/agentledger/internal/test/servicetest"
)

var (
	drillRounds = flag.Int("node-rounds", 1, "how many faults the drill of three nodes has")
	drillFault  = flag.String("node-fault", "", "only faults whose name has this text")
)

func TestMain(m *testing.M) { os.Exit(servicetest.Main(m)) }

// Three real nodes on a primary with a synchronous standby serve clients that choose any of them, while nodes, network,
// database and clocks fail in every way of faultKinds, one after the other. The drill checks:
//
//   - Every acknowledged event is stored under its acknowledged number, also if it was sent again.
//   - No reader sees a log shrink or fork, on any node, and the heads extend each other.
//   - Sums of a policy and the cap of a plan are exact. Each approval is consumed once, the steps of each run are in
//     order, and each callback arrives.
//   - The calls of all clients are linearizable (nodestest.History).
//   - fsck finds no fault with the anchors of each node.
func TestDrill(t *testing.T) {
	kinds := faultKinds(*drillFault)
	d := newDrill(t, drillProgram(t, kinds[:min(*drillRounds, len(kinds))]))
	d.awaitServing()
	work, stop := context.WithCancel(t.Context())
	defer stop()
	workers := d.startWork(work)
	for round := range *drillRounds {
		time.Sleep(time.Second)
		kind, again := kinds[round%len(kinds)], round >= len(kinds)
		if again {
			kind = kinds[rand.IntN(len(kinds))]
		}
		d.round(kind, again && kind.lasts && rand.IntN(2) == 0)
	}
	stop()
	workers.Wait()
	t.Logf("%v: the work has ended", time.Since(d.began).Round(time.Millisecond))
	d.checkAll()
	t.Logf("%v: all checks are done", time.Since(d.began).Round(time.Millisecond))
	for _, n := range d.nodes {
		n.terminate()
	}
	for _, n := range d.everyNode { // each has all anchors that it saw
		n.fsck()
	}
	d.report()
}

// drill is the state of a run.
type drill struct {
	t             *testing.T
	program       string
	database      *database
	organizations []*organization
	receiver      *servicetest.Callbacks
	calls         nodestest.History
	turn          atomic.Uint64 // of the next request, for the round robin
	second        *node         // killed during the fault of this round, or nil

	mu        sync.Mutex
	nodes     []*node // that requests are sent to
	everyNode []*node // that were ever started
	now       string  // the fault of the round
	began     time.Time
	tallies   map[string]*tally
}

// drillProgram returns the program of the nodes. The variant with a movable clock is built only if a fault moves it,
// because it requires compiling most packages again.
func drillProgram(t *testing.T, kinds []faultKind) string {
	if slices.ContainsFunc(kinds, func(k faultKind) bool { return k.clock }) {
		return buildWithClock(t)
	}
	return servicetest.Program(t)
}

func newDrill(t *testing.T, program string) *drill {
	began := time.Now()
	d := &drill{t: t, program: program, database: newDatabase(t), receiver: servicetest.NewCallbacks(t),
		began: began, now: noFault, tallies: map[string]*tally{noFault: {}}}
	for range 3 {
		n := d.newNode(t)
		n.start()
		d.nodes = append(d.nodes, n)
	}
	time.Sleep(2 * time.Second) // the nodes find each other, and shards move for the last time
	d.found()
	return d
}

// nextNode returns the node of the next request, like a round-robin balancer without knowledge of the nodes.
func (d *drill) nextNode() *node {
	return d.nodeAt(d.turn.Add(1))
}

// nodeAt returns the node of a turn. A failed request is retried at the node of the next turn.
func (d *drill) nodeAt(turn uint64) *node {
	all := d.running()
	return all[turn%uint64(len(all))]
}

// round causes a fault at a node, and waits until everything works again. A second node may be killed in the meantime.
func (d *drill) round(kind faultKind, twice bool) {
	all := d.running()
	i := rand.IntN(len(all))
	n := all[i]
	if d.second = nil; twice {
		d.second = all[(i+1)%len(all)]
		kind.name += ", and another node is killed"
	}
	d.beginRound(kind.name, n)
	kind.strike(d, n)
	d.awaitProgress()
	d.awaitServing()
	d.endRound()
}

// awaitServing waits until every node responds for every organization.
func (d *drill) awaitServing() {
	for _, n := range d.running() {
		for _, o := range d.organizations {
			d.await("a head", func() error {
				l, err := o.log(n.once())
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
	before := map[*organization]int{}
	for _, o := range d.organizations {
		before[o] = o.settled()
	}
	d.await("new events of each organization", func() error {
		for _, o := range d.organizations {
			if o.settled() == before[o] {
				return fmt.Errorf("%s has no new events", o.Slug)
			}
		}
		return nil
	})
}

func (d *drill) await(what string, look func() error) {
	d.t.Helper()
	for deadline := time.Now().Add(longestTry); ; time.Sleep(20 * time.Millisecond) {
		err := look()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("%s: %v", what, err)
		}
	}
}
