package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
)

// Holder has the state of the organizations that a node owns.
type Holder interface {
	// Release ends the work for shards that the node no longer owns. It returns once nothing is in flight for their
	// organizations and their state is dropped. No other node owns them before that. It must return soon after ctx
	// ends. Calls for different shards may run concurrently.
	Release(ctx context.Context, shards []Shard)
}

// Options configure a node.
type Options struct {
	Table  Table
	Node   Node // ID, Leaving and Beats are ignored
	Holder Holder
	Clock  func() time.Duration // a steady clock that continues while the machine sleeps

	// Prepare is called with the other members after the node has joined and before it owns a shard. It is retried
	// after an error. Its context ends when the node is forgotten. If nil, no preparation is needed.
	Prepare func(ctx context.Context, others []Node) error

	// Fit reports whether the node can serve organizations. A node that cannot, for example because its clock is wrong,
	// gives its organizations to the others and gets none, unless no node can serve. If nil, it always can.
	Fit func() bool

	Tell   func([]Node, News) // makes other nodes call Hear, in the background; if nil, they learn of changes from their next beat
	Logger *slog.Logger
}

// Cluster is the view of one node. Its methods may be called concurrently.
type Cluster struct {
	options Options
	look    chan struct{} // requests a beat at once

	mu      sync.Mutex
	state   *state
	changed chan struct{} // closed and replaced by each new view
	left    bool          // there will be no new view
	node    Node
	gains   uint64 // of earlier runs
}

// New returns the view of a node that has not joined yet and owns nothing.
func New(o Options) *Cluster {
	s := newState(NodeID{}, Shards)
	s.forget()
	return &Cluster{options: o, look: make(chan struct{}, 1), state: s, changed: make(chan struct{})}
}

// Owner describes the owner of an organization at one moment.
type Owner struct {
	Node  Node  // zero if none is known
	Mine  bool  // the owner is this node, which may start work now
	Epoch Epoch // of the lease

	Prepared bool // this node may own organizations: it is a member, and Prepare has succeeded

	Changed <-chan struct{} // closed at the next view of the cluster, which may have another owner
	Left    bool            // this node has left the cluster: there is no next view
}

// Owner returns the owner of an organization.
func (c *Cluster) Owner(t id.Tenant) Owner {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := Owner{Changed: c.changed, Left: c.left, Mine: c.state.owns(ShardOf(t), c.options.Clock()),
		Epoch: c.state.leases[ShardOf(t)].Epoch, Prepared: c.state.joined && !c.state.waits}
	o.Node, _ = c.state.owner(ShardOf(t))
	return o
}

// Owned reports whether the node owns an organization now.
func (c *Cluster) Owned(t id.Tenant) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.owns(ShardOf(t), c.options.Clock())
}

// Gains returns a number that increases after the node has become the owner of organizations, including those whose
// ownership it had lost for a while.
func (c *Cluster) Gains() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gains + c.state.gains
}

// OwnedShards returns the number of shards that the node owns now.
func (c *Cluster) OwnedShards() (owned int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.options.Clock()
	for shard := range Shard(Shards) {
		if c.state.owns(shard, now) {
			owned++
		}
	}
	return owned
}

// BeatAge returns the time since the start of the latest successful beat.
func (c *Cluster) BeatAge() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.options.Clock() - c.state.renewed
}

// Self returns the node itself, with the ID of its latest run.
func (c *Cluster) Self() Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.node
}

// Nodes returns all members that the node knows, in any order.
func (c *Cluster) Nodes() []Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Node, 0, len(c.state.members))
	for _, m := range c.state.members {
		all = append(all, m.Node)
	}
	return all
}

// Look makes the node beat at once, so that no request waits for the next beat. Calls while a beat is already requested
// have no effect.
func (c *Cluster) Look() {
	select {
	case c.look <- struct{}{}:
	default:
	}
}

// leaveTime bounds how long a node that is being stopped takes to leave.
const leaveTime = 5 * time.Second

// Run joins and beats until ctx ends. Then it gives all leases away and leaves. It returns an error if the node could
// not leave in time; the others then forget it soon. It retries after errors of the table.
func (c *Cluster) Run(ctx context.Context) error {
	var drains sync.WaitGroup
	defer drains.Wait()
	defer c.endView()
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	for ctx.Err() == nil {
		if err := c.join(ctx); err != nil {
			c.options.Logger.WarnContext(ctx, "cluster: this node cannot join", "error", err)
			c.rest(ctx, c.options.Clock()+c.state.timing.beatEvery)
			continue
		}
		if left, err := c.runMember(ctx, work, &drains); left || ctx.Err() != nil {
			return err
		}
		drains.Wait() // so that old work does not overlap new work for the same shard
		c.options.Logger.WarnContext(ctx, "cluster: this node was silent for too long and joins again")
	}
	return nil
}

// join makes the node a member with a new ID.
func (c *Cluster) join(ctx context.Context) error {
	n := c.options.Node
	n.ID = NewNodeID()
	n.Leaving = c.options.Prepare != nil // otherwise the others might give it shards before its first beat
	ctx, cancel := context.WithTimeout(ctx, defaultTiming().ownFor)
	defer cancel()
	if err := c.options.Table.Join(ctx, n); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gains += c.state.gains
	c.state, c.node = newState(n.ID, Shards), n
	c.state.waits = c.options.Prepare != nil
	return nil
}

// runMember beats until the node has left, and then returns true, or until it was forgotten. When ctx ends, it starts
// to leave.
func (c *Cluster) runMember(ctx, work context.Context, drains *sync.WaitGroup) (left bool, err error) {
	var deadline <-chan time.Time
	member, end := context.WithCancel(ctx)
	defer end()
	prepared := c.options.Prepare == nil
	for {
		if ctx.Err() != nil && deadline == nil {
			deadline = time.After(leaveTime)
			c.beginStop()
		}
		select {
		case <-deadline:
			return true, errors.New("leave the cluster: timed out")
		default:
		}
		next, err := c.beat(work, drains)
		switch {
		case errors.Is(err, errLeft):
			return true, nil
		case errors.Is(err, ErrForgotten):
			c.forget(work, drains)
			return false, nil
		case err != nil:
			c.options.Logger.WarnContext(ctx, "cluster: a beat failed", "error", err)
		case !prepared:
			prepared = true
			drains.Go(func() { c.prepare(member) })
		}
		c.rest(ctx, next)
	}
}

// prepare calls Prepare until it succeeds, or until the node is forgotten, because its list of members is then
// outdated. After a success, the node may own shards.
func (c *Cluster) prepare(ctx context.Context) {
	for c.isJoined() && ctx.Err() == nil {
		err := c.options.Prepare(ctx, c.others())
		if err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.state.waits = false
			c.Look()
			return
		}
		c.options.Logger.WarnContext(ctx, "cluster: this node is not prepared yet", "error", err)
		_ = syncs.Sleep(ctx, defaultTiming().beatEvery)
	}
}

func (c *Cluster) isJoined() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.joined
}

func (c *Cluster) beginStop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.stops = true
}

// rest waits until the given time, for Look, or for the end of ctx. Once ctx has ended, it waits at most leaveStep.
func (c *Cluster) rest(ctx context.Context, until time.Duration) {
	d := until - c.options.Clock()
	if d <= 0 {
		return
	}
	if ctx.Err() != nil { // the node is leaving
		d, ctx = min(d, leaveStep), context.WithoutCancel(ctx)
	}
	timed, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-c.look:
	case <-timed.Done():
	}
}

// leaveStep is the wait between two beats of a node that is leaving.
const leaveStep = 10 * time.Millisecond

var errLeft = errors.New("the node left")

// beat makes one beat. It returns when the next one is due.
func (c *Cluster) beat(work context.Context, drains *sync.WaitGroup) (next time.Duration, err error) {
	begin := c.options.Clock()
	step, leases := c.plan(begin)
	if c.drain(work, drains, leases, drainWait) {
		begin = c.options.Clock()
		step, _ = c.plan(begin) // with the gifts
	}
	ctx, cancel := context.WithTimeout(work, c.state.timing.ownFor)
	defer cancel()
	v, err := c.options.Table.Beat(ctx, step)
	if err != nil {
		return c.state.nextBeat(begin), fmt.Errorf("beat: %w", err)
	}
	if step.HasChanges() {
		defer c.tell(newsOf(step, v))
	}
	if step.Leave {
		return 0, errLeft
	}
	return c.observe(v, begin, c.options.Clock()), nil
}

func (c *Cluster) plan(now time.Duration) (Step, []Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.unfit = c.options.Fit != nil && !c.options.Fit()
	return c.state.plan(now)
}

// observe processes the result of a beat and returns when the next beat is due: at once if anything changed.
func (c *Cluster) observe(v View, begin, end time.Duration) (next time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	news := c.state.observe(v, begin, end)
	close(c.changed)
	c.changed = make(chan struct{})
	if news {
		return end
	}
	return c.state.nextBeat(begin)
}

// endView notifies those who wait for another owner that there will be no new view.
func (c *Cluster) endView() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = true
	close(c.changed)
	c.changed = make(chan struct{})
}

// tell sends the changes to the other nodes.
func (c *Cluster) tell(n News) {
	if c.options.Tell == nil {
		return
	}
	c.options.Tell(c.others(), n)
}

// others returns all members except the node itself.
func (c *Cluster) others() []Node {
	self := c.Self().ID
	return slices.DeleteFunc(c.Nodes(), func(n Node) bool { return n.ID == self })
}

// drainWait is how long a beat waits for shards that are being released. Usually this takes a few milliseconds, and
// then the same beat gives the leases away.
const drainWait = 100 * time.Millisecond

// drain releases shards in the background, after which their leases can be given away. It waits for at most the given
// time, and reports whether the release is done.
func (c *Cluster) drain(work context.Context, drains *sync.WaitGroup, leases []Lease, most time.Duration) bool {
	if len(leases) == 0 {
		return false
	}
	shards := make([]Shard, len(leases))
	for i, l := range leases {
		shards[i] = l.Shard
	}
	state, done := c.state, make(chan struct{})
	drains.Go(func() {
		c.options.Holder.Release(work, shards)
		c.mu.Lock()
		defer c.mu.Unlock()
		state.finishDrain(leases)
		close(done)
		c.Look()
	})
	select {
	case <-done:
		return true
	case <-time.After(most):
		return false
	}
}

// forget ends the node's ownership, and releases everything that it owns.
func (c *Cluster) forget(work context.Context, drains *sync.WaitGroup) {
	c.mu.Lock()
	c.state.forget()
	owned := c.state.ownLeases()
	c.mu.Unlock()
	c.drain(work, drains, owned, 0)
}
