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

// Holder has the state of organizations that a node owns.
type Holder interface {
	// Release ends the work for shards, which the node does not own any more when it is called. It returns once
	// nothing is under way for their organizations, and their state is dropped. Before that no other node owns them.
	// It MUST return soon after ctx ends. Calls for different shards may run at once.
	Release(ctx context.Context, shards []Shard)
}

// Options are those of a node.
type Options struct {
	Table  Table
	Node   Node // ID, Leaving and Beats are not read
	Holder Holder
	Clock  func() time.Duration // a steady clock that goes on while the machine sleeps

	// Prepare is called after the node joined and before it owns a shard, with the other members. After an error it is
	// called again. Its context ends when the node is forgotten. Nil: nothing has to be prepared.
	Prepare func(ctx context.Context, others []Node) error

	// Fit reports whether the node can serve organizations. One that can't, for example because its clock is wrong,
	// gives its organizations to the others and gets none, unless no node can. Nil: always.
	Fit func() bool

	Tell   func([]Node, News) // makes other nodes call Hear, in the background; nil leaves them to their next beat
	Logger *slog.Logger
}

// Cluster is the view of one node. Its methods may be called concurrently.
type Cluster struct {
	options Options
	look    chan struct{} // asks for a beat at once

	mu      sync.Mutex
	state   *state
	changed chan struct{} // closed and replaced with each new view
	left    bool          // there is no further one
	node    Node
	gains   uint64 // of earlier runs
}

// New returns the view of a node that has not joined yet and owns nothing.
func New(o Options) *Cluster {
	s := newState(NodeID{}, Shards)
	s.forget()
	return &Cluster{options: o, look: make(chan struct{}, 1), state: s, changed: make(chan struct{})}
}

// Owner is the owner of an organization at a moment.
type Owner struct {
	Node  Node  // the zero value if none is known
	Mine  bool  // the node itself, which may begin work now
	Epoch Epoch // of the lease

	Prepared bool // the node that was asked may own organizations: it is a member, and Prepare has succeeded

	Changed <-chan struct{} // closed at the next view of the cluster, which may have another owner
	Left    bool            // the node that was asked has left the cluster: there is no next view
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

// Gains returns a number that rises after the node came to own organizations, also those that it did not take itself
// for the owner of for a while.
func (c *Cluster) Gains() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gains + c.state.gains
}

// OwnedShards returns how many shards the node owns now.
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

// BeatAge returns the time since the begin of the newest beat that succeeded.
func (c *Cluster) BeatAge() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.options.Clock() - c.state.renewed
}

// Self returns the node itself, with the id of its newest run.
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

// Look makes the node beat at once, so that no request waits for the next beat. Calls while a beat is due are one.
func (c *Cluster) Look() {
	select {
	case c.look <- struct{}{}:
	default:
	}
}

// leaveTime bounds the end of a node that is being stopped.
const leaveTime = 5 * time.Second

// Run joins and beats until ctx ends. Then it gives all leases away and leaves. An error says that the node could not
// leave in time. The others forget it soon. After an error of the table it tries again.
func (c *Cluster) Run(ctx context.Context) error {
	var drains sync.WaitGroup
	defer drains.Wait()
	defer c.endView()
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	for ctx.Err() == nil {
		if err := c.join(ctx); err != nil {
			c.options.Logger.WarnContext(ctx, "cluster: this node can't join", "error", err)
			c.rest(ctx, c.options.Clock()+c.state.timing.beatEvery)
			continue
		}
		if left, err := c.runMember(ctx, work, &drains); left || ctx.Err() != nil {
			return err
		}
		drains.Wait() // so that no old work meets new work for the same shard
		c.options.Logger.WarnContext(ctx, "cluster: this node was silent for too long and joins anew")
	}
	return nil
}

// join makes the node a member under a new id.
func (c *Cluster) join(ctx context.Context) error {
	n := c.options.Node
	n.ID = NewNodeID()
	n.Leaving = c.options.Prepare != nil // else the others may give it shards before its first beat
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

// runMember beats until the node left, which is true, or was forgotten. When ctx ends, it begins to leave.
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
			return true, errors.New("leave the cluster: not in time")
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

// prepare calls Prepare until it succeeds, or until the node is forgotten, because the members that it knows are then
// old. From a success on the node may own shards.
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

// rest waits until a time, for the end of ctx once, or for Look.
func (c *Cluster) rest(ctx context.Context, until time.Duration) {
	d := until - c.options.Clock()
	if d <= 0 {
		return
	}
	if ctx.Err() != nil { // the node leaves: soon is soon enough
		d, ctx = min(d, leaveStep), context.WithoutCancel(ctx)
	}
	timed, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-c.look:
	case <-timed.Done():
	}
}

// leaveStep is the wait between two beats of a node that leaves.
const leaveStep = 10 * time.Millisecond

var errLeft = errors.New("the node left")

// beat is one turn. It returns when the next one is due.
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

// observe takes an answer in and returns when the next beat is due: at once if the answer has news.
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

// endView tells those who wait for another owner that the node learns of none any more.
func (c *Cluster) endView() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = true
	close(c.changed)
	c.changed = make(chan struct{})
}

// tell makes the others take the changes in.
func (c *Cluster) tell(n News) {
	if c.options.Tell == nil {
		return
	}
	c.options.Tell(c.others(), n)
}

// others returns all members but the node itself.
func (c *Cluster) others() []Node {
	self := c.Self().ID
	return slices.DeleteFunc(c.Nodes(), func(n Node) bool { return n.ID == self })
}

// drainWait is how long a beat waits for shards that are being released. Mostly that takes a few milliseconds, and the
// leases are given away by the same beat.
const drainWait = 100 * time.Millisecond

// drain releases shards in the background. Their leases can be given away afterwards. It waits for that for a while,
// and reports whether it is done.
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

// forget ends the node's ownership, and releases all that it has.
func (c *Cluster) forget(work context.Context, drains *sync.WaitGroup) {
	c.mu.Lock()
	c.state.forget()
	owned := c.state.ownLeases()
	c.mu.Unlock()
	c.drain(work, drains, owned, 0)
}
