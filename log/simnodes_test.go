package log_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/log/replica"
	"github.com/agentledger/agentledger/log/takeover"
	"github.com/agentledger/agentledger/storage"
)

var nodeSeeds = flag.Uint64("sim-node-seeds", 48, "how many seeds the simulation of two nodes runs")

// Two processes share a store. Ownership of the ledgers moves at any moment: to the other one, to both, to none, and
// while a ledger is being read. Each has its own anchors, and the other's reach it late. Requests that were given up
// may arrive at the store later.
func TestSimulationOfNodes(t *testing.T) {
	t.Parallel()
	w := newEnvelopes(t)
	first, last, stoodIn := uint64(1), *nodeSeeds, 0
	if *simSeed != 0 {
		first, last = *simSeed, *simSeed
	}
	for seed := first; seed <= last; seed++ {
		s := newNodeSim(t, w, seed)
		if s.run(); t.Failed() {
			t.Fatalf("replay with -run '^TestSimulationOfNodes$' -sim-seed %d", seed)
		}
		stoodIn += s.stoodIn
	}
	if t.Logf("%d reads at nodes that did not own the ledger", stoodIn); stoodIn == 0 && *simSeed == 0 {
		t.Error("no node stood in")
	}
}

// nodeSim is one run. Its sim has the state of the node that acts at the moment.
type nodeSim struct {
	*sim
	nodes        []*simNode
	acting       *simNode
	sleeps       bool // nodes may sleep
	anchorsFirst bool

	nested bool // a node sleeps, and the other acts

	impatient bool // owners show a ledger although an append is late, as they must not

	atLeast map[id.Tenant]id.Index // the size that was shown or acknowledged
	stoodIn int                    // reads at nodes that did not own the ledger
}

// simNode is one process.
type simNode struct {
	number  int
	log     *log.Stepped
	anchors *anchor.Folder
	news    *anchor.Follower
	readers *replica.Ledgers
	owns    map[id.Tenant]bool
	alone   map[id.Tenant]bool // no other node owned the ledger since this one began to
	left    map[id.Tenant]bool // it has owned the ledger, and has not released it yet
}

func newNodeSim(t *testing.T, w *envelopes, seed uint64) *nodeSim {
	s := &nodeSim{sim: newSimState(t, w, seed), atLeast: map[id.Tenant]id.Index{}}
	s.store.delays = true
	s.crashes = s.endAll
	s.acknowledged = s.noteAcknowledged
	s.anchorsFirst = seed%3 == 0
	for i := range 2 {
		n := &simNode{number: i}
		s.nodes = append(s.nodes, n)
		s.start(n)
	}
	for _, tenant := range s.tenants {
		s.grant(s.nodes[0], tenant)
	}
	s.act(s.nodes[0])
	s.create()
	s.sleeps = true
	return s
}

// start starts a process, which gets the anchors of the other one.
func (s *nodeSim) start(n *simNode) {
	var err error
	if n.anchors, err = anchor.Open(fmt.Sprintf("%s-node-%d", s.dir, n.number)); err != nil {
		s.t.Fatal(err)
	}
	n.news = n.anchors.Follow()
	n.owns, n.alone, n.left = map[id.Tenant]bool{}, map[id.Tenant]bool{}, map[id.Tenant]bool{}
	s.act(n)
	o := s.options()
	o.Store = nodeStore{s.store, func(t id.Tenant) { s.sleep(n, t) }}
	o.Owned = func(t id.Tenant) bool { return n.owns[t] }
	o.AnchorFirst = func() bool { return s.anchorsFirst }
	o.FirstAnchor = func(_ context.Context, checkpoint []byte) error {
		_, err := s.other(n).anchors.Receive([]anchor.Note{{Text: checkpoint}})
		return err
	}
	fails := s.store.fails
	s.store.fails = 0
	n.log, err = log.OpenStepped(s.t.Context(), o)
	s.store.fails = fails
	if err != nil {
		s.t.Fatal(err)
	}
	o.Anchors = n.anchors
	n.readers = replica.New(replica.Options{Ledgers: n.log.Ledgers, Reader: log.NewReader(o), Store: o.Store,
		Anchors: n.anchors, Elapsed: s.elapsedNow, AnchorFirst: o.AnchorFirst, Wait: s.pause})
	if other := s.other(n); other != nil && other.log != nil {
		var notes []anchor.Note
		for note, err := range other.anchors.Notes() {
			s.must(err)
			notes = append(notes, note)
		}
		s.must(n.log.ReceiveAnchors(s.t.Context(), notes))
	}
	s.act(n)
}

func (s *nodeSim) noteAcknowledged(t *ticket, size id.Index) {
	s.atLeast[t.tenant] = max(s.atLeast[t.tenant], size)
	for _, n := range s.nodes {
		if anchored, _ := n.anchors.Size(ledgertest.Genesis(t.tenant).Origin); s.anchorsFirst && n.log == t.by && anchored < size {
			s.fault("ticket %d: acknowledged at size %d, and the anchor of its node is at %d", t.number, size, anchored)
		}
	}
}

func (s *nodeSim) act(n *simNode) { s.acting, s.log, s.anchors = n, n.log, n.anchors }

func (s *nodeSim) other(n *simNode) *simNode {
	for _, o := range s.nodes {
		if o != n {
			return o
		}
	}
	return nil
}

// grant gives a ledger to one node alone.
func (s *nodeSim) grant(n *simNode, t id.Tenant) {
	s.trace("  tenant %d goes to node %d", t, n.number)
	sleeps := s.sleeps
	s.sleeps = false
	defer func() { s.sleeps = sleeps }()
	if !n.alone[t] {
		s.revoke(t)
	} else {
		s.leave(s.other(n), t)
	}
	s.own(n, t)
	n.alone[t] = true
}

// own gives a ledger to a node, which has released it since it owned it before.
func (s *nodeSim) own(n *simNode, t id.Tenant) {
	if n.left[t] {
		s.release(n, t)
	}
	n.owns[t] = true
}

func (s *nodeSim) leave(n *simNode, t id.Tenant) {
	if n != nil && n.owns[t] {
		n.owns[t], n.alone[t], n.left[t] = false, false, true
	}
}

// revoke takes a ledger from all nodes.
func (s *nodeSim) revoke(t id.Tenant) {
	for _, n := range s.nodes {
		s.leave(n, t)
	}
}

// share gives a ledger to both.
func (s *nodeSim) share(t id.Tenant) {
	s.trace("  tenant %d goes to both", t)
	sleeps := s.sleeps
	s.sleeps = false
	defer func() { s.sleeps = sleeps }()
	for _, n := range s.nodes {
		if !n.owns[t] {
			s.own(n, t)
		}
		n.alone[t] = false
	}
}

// release ends the work of a node for a ledger, in order or in the middle of it.
func (s *nodeSim) release(n *simNode, t id.Tenant) {
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	if s.nested || s.random.IntN(2) == 0 || !s.rest(n) {
		cancel()
	}
	err := n.log.Release(ctx, func(other id.Tenant) bool { return other == t })
	s.trace("  node %d releases tenant %d: %v", n.number, t, err)
	n.left[t] = false
}

// rest lets a node end its work.
func (s *nodeSim) rest(n *simNode) bool {
	for n.log.Repair() || n.log.Land(s.random.IntN) || n.log.Launch() {
		continue
	}
	return n.log.Idle()
}

// nodeStore is the store as one node reaches it.
type nodeStore struct {
	*simStore
	asleep func(id.Tenant)
}

func (s nodeStore) Head(ctx context.Context, t id.Tenant) (storage.Head, error) {
	s.asleep(t)
	return s.simStore.Head(ctx, t)
}

// sleep lets the other node go on while one is about to read a head.
func (s *nodeSim) sleep(asleep *simNode, t id.Tenant) {
	if !s.sleeps || s.nested || !s.store.chance(0.05) || s.store.broken() {
		return
	}
	acting, fails := s.acting, s.store.fails
	s.nested, s.store.fails = true, 0
	awake := s.other(asleep)
	s.trace("  node %d sleeps", asleep.number)
	s.act(awake)
	s.grant(awake, t)
	s.look(t)
	open := s.tickets
	s.tickets = nil
	s.begin(awake.log, &ticket{tenant: t, names: s.fresh(1)})
	s.rest(awake)
	s.poll()
	s.tickets = append(open, s.tickets...)
	if s.random.IntN(3) == 0 {
		s.grant(asleep, t)
	}
	s.act(acting)
	s.trace("  node %d is awake", asleep.number)
	s.nested, s.store.fails = false, fails
}

// look reads the newest state. An owner shows all that was shown or acknowledged before.
func (s *nodeSim) look(t id.Tenant) {
	n, least := s.acting, s.atLeast[t]
	state, late, err := s.log.Newest(s.t.Context(), t)
	if err != nil || late && !s.impatient {
		s.trace("  node %d: tenant %d: late %v, %v", n.number, t, late, err)
		return
	}
	if !n.owns[t] || !n.alone[t] {
		return
	}
	s.trace("  node %d shows tenant %d at %d", n.number, t, state.Size())
	if state.Size() < least {
		s.fault("tenant %d: node %d shows size %d after %d", t, n.number, state.Size(), least)
	}
	s.atLeast[t] = max(s.atLeast[t], state.Size())
}

// standIn reads the newest state at a node that does not own the ledger. It is durable, and not smaller than any that
// was shown or acknowledged before the read. No owner shows a smaller one afterwards.
func (s *nodeSim) standIn(t id.Tenant) {
	n, least := s.acting, s.atLeast[t]
	if n.owns[t] {
		return
	}
	state, err := n.readers.State(takeover.WithStandIn(s.t.Context()), t)
	if err != nil {
		s.trace("  node %d stands in for tenant %d: %v", n.number, t, err)
		return
	}
	s.trace("  node %d stands in for tenant %d at %d", n.number, t, state.Size())
	s.durable.replay(s.store.applied[:s.store.durable])
	s.durable.published(t, state, s.durable)
	if state.Size() < least {
		s.fault("tenant %d: node %d stands in with size %d after %d", t, n.number, state.Size(), least)
	}
	s.atLeast[t] = max(s.atLeast[t], state.Size())
	s.stoodIn++
}

// pause lets time pass for a node that waits, in which both nodes act.
func (s *nodeSim) pause(_ context.Context, d time.Duration) error {
	d = max(d, 0)
	until := s.elapsed + d
	acting, nested := s.acting, s.nested
	s.nested = true
	for range s.random.IntN(6) {
		s.elapsed += d / 8
		n, t := s.nodes[s.random.IntN(2)], s.tenant()
		s.act(n)
		s.take(-1, []simStep{
			{8, "submit", func() { s.submit(1) }},
			{8, "launch", func() { s.log.Launch() }},
			{6, "land", func() { s.log.Land(s.random.IntN) }},
			{3, "repair", func() { s.log.Repair() }},
			{8, "look", func() { s.look(t) }},
			{2, "move", func() { s.grant(n, t) }},
			{2, "spread", func() { s.spread(n) }},
			{2, "a late request", s.store.deliver},
		})
	}
	s.act(acting)
	s.nested, s.elapsed = nested, until
	return nil
}

// end ends a process. Another one starts in its place, and owns nothing.
func (s *nodeSim) end(n *simNode) {
	s.trace("  node %d ends", n.number)
	s.must(n.anchors.Abandon())
	s.tickets = slices.DeleteFunc(s.tickets, func(t *ticket) bool { return t.by == n.log })
	s.start(n)
}

// endAll ends both processes and the store, which loses the appends that are not durable.
func (s *nodeSim) endAll() {
	s.trace("  all end: %d of %d appends are durable", s.store.durable, len(s.store.applied))
	s.store.crash()
	for _, n := range s.nodes {
		s.end(n)
	}
}

// spread brings the newest anchors of a node to the other one.
func (s *nodeSim) spread(n *simNode) {
	notes, missed := n.news.Take()
	if missed {
		s.fault("a follower has missed notes")
	}
	_ = s.other(n).log.ReceiveAnchors(s.t.Context(), notes) // the store may be out of reach
}

func (s *nodeSim) step(n int) {
	node, t := s.nodes[s.random.IntN(2)], s.tenant()
	if s.store.broken() && s.random.IntN(4) == 0 {
		s.endAll()
	}
	end := func() { s.end(node) }
	if s.store.broken() {
		end = s.endAll
	}
	s.act(node)
	s.elapsed += []time.Duration{0, time.Millisecond, 100 * time.Millisecond, 400 * time.Millisecond}[s.random.IntN(4)]
	steps := []simStep{
		{24, "submit", func() { s.submit(1) }},
		{4, "submit several", func() { s.submit(2 + s.random.IntN(5)) }},
		{1, "submit many", func() { s.submit(s.many(60 + s.random.IntN(250))) }},
		{4, "reconfigure", s.reconfigure},
		{2, "erase", func() { s.begin(s.log, &ticket{tenant: t, names: s.fresh(1), erase: true}) }},
		{8, "submit again", s.again},
		{24, "launch", func() { s.log.Launch() }},
		{24, "land", func() { s.log.Land(s.random.IntN) }},
		{10, "repair", func() { s.log.Repair() }},
		{8, "look", func() { s.look(t) }},
		{8, "stand in", func() { s.standIn(t) }},
		{3, "read", s.read},
		{8, "move", func() { s.grant(node, t) }},
		{2, "share", func() { s.share(t) }},
		{1, "revoke", func() { s.revoke(t) }},
		{4, "release", func() {
			if node.left[t] {
				s.release(node, t)
			}
		}},
		{3, "anchors", func() { s.must(s.log.FlushAnchors()) }},
		{4, "spread", func() { s.spread(node) }},
		{4, "a late request", s.store.deliver},
		{3, "clock", s.clock},
		{2, "correct clock", func() { s.begin(s.log, &ticket{tenant: t, names: s.fresh(1), correct: true}) }},
		{1, "end", end},
		{1, "end all", s.endAll},
	}
	s.take(n, steps)
}

func (s *nodeSim) check() {
	for _, n := range s.nodes {
		s.act(n)
		s.sim.check()
	}
}

func (s *nodeSim) run() {
	defer func() {
		for _, n := range s.nodes {
			n.anchors.Close()
		}
	}()
	for step := range 2 * simSteps {
		s.store.fails = s.fails
		s.guarded(func() { s.step(step) })
		if s.check(); s.faults > 0 {
			return
		}
	}
	s.trace("to the end")
	s.store.fails, s.sleeps = 0, false
	if s.store.broken() {
		s.endAll()
	}
	s.settle()
	s.check()
	for _, n := range s.nodes {
		if !n.log.Idle() || len(s.tickets) > 0 {
			s.fault("at the end: node %d: idle %v, %d open submissions", n.number, n.log.Idle(), len(s.tickets))
		}
	}
	s.act(s.nodes[0])
	s.last()
	s.check()
}

// settle gives everything to one node, and lets all work come to its end.
func (s *nodeSim) settle() {
	for len(s.store.late) > 0 {
		s.store.deliver()
	}
	for _, t := range s.tenants {
		s.grant(s.nodes[0], t)
	}
	for range 2 {
		for _, n := range s.nodes {
			s.act(n)
			s.drain(n.log)
		}
	}
}

// The simulation finds a store whose guard ignores the epoch. Then a node that lost a ledger goes on unseen by the new
// owner, which shows a smaller tree than was acknowledged. And events land after all that were refused.
func TestSimulationOfNodesNeedsTheEpoch(t *testing.T) {
	t.Parallel()
	w := newEnvelopes(t)
	for seed := uint64(1); seed <= 100; seed++ {
		s := newNodeSim(t, w, seed)
		s.store.unfenced, s.tells = true, false
		if s.run(); s.faults > 0 {
			return
		}
	}
	t.Error("100 seeds found nothing")
}

// The simulation finds an owner that shows a ledger although an append is late. A stand-in may have shown the result of
// that append by then.
func TestSimulationOfNodesNeedsPatience(t *testing.T) {
	t.Parallel()
	w := newEnvelopes(t)
	for seed := uint64(1); seed <= 100; seed++ {
		s := newNodeSim(t, w, seed)
		s.impatient, s.tells = true, false
		if s.run(); s.faults > 0 {
			return
		}
	}
	t.Error("100 seeds found nothing")
}
