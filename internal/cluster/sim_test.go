package cluster_test

import (
	"container/heap"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/test/nodestest"
)

var (
	simSeed  = flag.Uint64("sim-seed", 0, "replay the simulation with this seed, event by event")
	simSeeds = flag.Uint64("sim-seeds", 300, "how many seeds the simulation runs")
)

const (
	simShards = 8
	simTrial  = 25 * time.Second // with faults
	simRest   = 9 * time.Second  // without faults, until all shards have their owners
	ownFor    = 1500 * time.Millisecond
	deadAfter = 2 * time.Second
)

// Nodes with separate clocks beat, pause, die, return, leave and are cut off from the table, in an order that the seed
// determines. Calls are lost before or after they take effect, and may take effect long after they were given up. At no
// moment may two nodes own a shard. Soon after the last fault, each shard has the owner that hashing determines.
func TestSimulation(t *testing.T) {
	t.Parallel()
	first, last := uint64(1), *simSeeds
	if *simSeed != 0 {
		first, last = *simSeed, *simSeed
	}
	for seed := first; seed <= last; seed++ {
		s := newSim(seed, ownFor, deadAfter)
		if *simSeed != 0 {
			s.tell = t.Logf
		}
		if err := s.run(); err != nil {
			t.Fatalf("%v: replay with -run '^TestSimulation$' -sim-seed %d", err, seed)
		}
	}
}

// The simulation detects a broken rule.
func TestSimulationFindsFaults(t *testing.T) {
	t.Parallel()
	for name, weaken := range map[string]func(*sim){
		"a node owns for longer than it takes to be forgotten": func(s *sim) { s.ownFor = 3 * time.Second },
		"a silent node is forgotten too early":                 func(s *sim) { s.deadAfter = 1200 * time.Millisecond },
		"a gift is applied whatever the epoch":                 func(s *sim) { s.giftsIgnoreEpoch = true },
		"a silent node is deleted whatever its count":          func(s *sim) { s.forgetIgnoresBeats = true },
		"a forgotten node goes on":                             func(s *sim) { s.forgottenGoesOn = true },
		"news that leave a gap are taken":                      func(s *sim) { s.hearsGaps = true },
		"a lease is given before its work has ended":           func(s *sim) { s.drainAtOnce = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= 20_000; seed++ {
				s := newSim(seed, ownFor, deadAfter)
				weaken(s)
				if s.run() != nil {
					return
				}
			}
			t.Error("20,000 seeds found nothing")
		})
	}
}

// Nodes use the same times as the simulation. A node whose clock is slow by a quarter stops owning before another node
// with a correct clock forgets it. Two beats may be lost before that.
func TestTimes(t *testing.T) {
	beat, own, dead := cluster.Times()
	if beat != 500*time.Millisecond || own != ownFor || dead != deadAfter {
		t.Errorf("got beats each %v, belief for %v, death after %v", beat, own, dead)
	}
	if own > dead*3/4 || own < 3*beat {
		t.Errorf("belief for %v, beats each %v, death after %v do not fit together", own, beat, dead)
	}
}

// sim is one run.
type sim struct {
	random            *rand.Rand
	table             *nodestest.MemoryTable
	now               time.Duration
	events            events
	nodes             []*simNode
	ownFor, deadAfter time.Duration
	tell              func(string, ...any)
	calm              int  // one call in calm is lost in each direction
	quiet             bool // no more faults

	giftsIgnoreEpoch, forgetIgnoresBeats, forgottenGoesOn, drainAtOnce, hearsGaps bool
}

// simNode is one process, across restarts.
type simNode struct {
	number int
	id     cluster.NodeID
	state  *cluster.State // nil while it is stopped
	rate   float64        // of its clock
	offset time.Duration
	paused time.Duration          // until then it does nothing
	cut    time.Duration          // until then the table can't be reached
	busy   map[cluster.Lease]bool // leases whose work has not ended
}

func newSim(seed uint64, own, dead time.Duration) *sim {
	s := &sim{random: rand.New(rand.NewPCG(seed, 21)), table: nodestest.NewMemoryTable(simShards),
		ownFor: own, deadAfter: dead,
		calm: 4 << rand.New(rand.NewPCG(seed, 22)).IntN(5), tell: func(string, ...any) {}}
	for i := range 2 + s.random.IntN(3) {
		s.nodes = append(s.nodes, &simNode{number: i,
			rate: 0.95 + s.random.Float64()/10, offset: time.Duration(s.random.Int64N(1e12))})
	}
	return s
}

// clock returns the node's own time.
func (n *simNode) clock(now time.Duration) time.Duration {
	return n.offset + time.Duration(float64(now)*n.rate)
}

// real returns the time of the simulation at which the node's clock shows the given time.
func (n *simNode) real(t time.Duration) time.Duration {
	return time.Duration(float64(t-n.offset)/n.rate) + time.Microsecond
}

func (s *sim) run() error {
	for _, n := range s.nodes {
		s.after(s.upTo(3*time.Second), func() { s.start(n) })
	}
	for at := s.upTo(time.Second); at < simTrial; at += s.upTo(3 * time.Second) {
		s.after(at, s.fault)
	}
	s.after(simTrial, s.mend)
	for len(s.events) > 0 && s.events[0].at < simTrial+simRest {
		e := heap.Pop(&s.events).(event)
		s.now = e.at
		e.do()
		if err := s.checkOwners(); err != nil {
			return err
		}
	}
	s.now = simTrial + simRest
	return s.checkPlaces()
}

// checkOwners looks for shards with two owners. A paused node owns nothing: its code does not run.
func (s *sim) checkOwners() error {
	for shard := range cluster.Shard(simShards) {
		var owners []int
		for _, n := range s.nodes {
			if n.state != nil && n.paused <= s.now && n.uses(shard, n.clock(s.now)) {
				owners = append(owners, n.number)
			}
		}
		if len(owners) > 1 {
			return fmt.Errorf("at %v shard %d has the owners %v", s.now, shard, owners)
		}
	}
	return nil
}

// uses reports whether the node may start work for a shard, or has work in flight. Work ends when ownership expires.
func (n *simNode) uses(shard cluster.Shard, now time.Duration) bool {
	if n.state.Owns(shard, now) {
		return true
	}
	for l := range n.busy {
		if l.Shard == shard && n.state.Believes(now) {
			return true
		}
	}
	return false
}

// checkPlaces compares the owners with those that hashing determines.
func (s *sim) checkPlaces() error {
	var live []cluster.NodeID
	for _, n := range s.nodes {
		if n.state != nil {
			live = append(live, n.id)
		}
	}
	for shard := range cluster.Shard(simShards) {
		want := cluster.Winner(live, shard)
		for _, n := range s.nodes {
			if n.state == nil {
				continue
			}
			got, _ := n.state.OwnerOf(shard)
			if owns := n.state.Owns(shard, n.clock(s.now)); got.ID != want || owns != (n.id == want) {
				return fmt.Errorf("at the end node %d says that %v owns shard %d, by itself %t; want %v",
					n.number, got.ID, shard, owns, want)
			}
		}
	}
	return nil
}
