package cluster_test

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentledger/agentledger/internal/cluster"
)

// start starts a run of a node.
func (s *sim) start(n *simNode) {
	if n.state != nil {
		return
	}
	for i := range n.id {
		n.id[i] = byte(s.random.Uint32())
	}
	n.busy = map[cluster.Lease]bool{}
	n.state = cluster.Begin(n.id, simShards, s.ownFor, s.deadAfter)
	s.tell("%v node %d starts as %v", s.now, n.number, n.id)
	if err := s.table.Join(context.Background(), cluster.Node{ID: n.id}); err != nil {
		panic(err)
	}
	s.beat(n, n.state)
}

// beat makes one beat of a node: it plans, calls the table and processes the result.
func (s *sim) beat(n *simNode, st *cluster.State) {
	if n.state != st {
		return
	}
	if n.paused > s.now {
		s.at(n.paused, func() { s.beat(n, st) })
		return
	}
	begin := n.clock(s.now)
	step, leases := st.Plan(begin)
	s.drain(n, st, leases)
	s.tell("%v node %d: %+v", s.now, n.number, step)
	u := turn{node: n, state: st, step: step, begin: begin}
	s.call(n, step, func(v cluster.View, err error) { s.answered(u, v, err) })
}

func (s *sim) drain(n *simNode, st *cluster.State, leases []cluster.Lease) {
	if len(leases) == 0 {
		return
	}
	for _, l := range leases {
		n.busy[l] = true
	}
	ended := func() {
		for _, l := range leases {
			delete(n.busy, l)
		}
	}
	took := s.upTo(300 * time.Millisecond)
	s.after(took, ended)
	if s.drainAtOnce {
		took = 0
	}
	s.after(took, func() { st.FinishDrain(leases) })
}

// call sends a step. Each direction takes some time; either may be lost, and a lost call may still take effect later.
func (s *sim) call(n *simNode, step cluster.Step, answer func(cluster.View, error)) {
	const gaveUp = time.Second
	lost := func() { answer(cluster.View{}, errors.New("no answer")) }
	there, back, fate := s.delay(), s.delay(), s.random.IntN(s.calm)
	switch {
	case n.cut > s.now:
		s.after(gaveUp, lost)
	case !s.quiet && fate == 0: // the call is lost
		s.after(gaveUp, lost)
	case !s.quiet && fate == 1: // the response is lost
		s.after(there, func() { s.apply(step) })
		s.after(gaveUp, lost)
	case !s.quiet && fate == 2: // it takes effect after it was given up
		s.after(gaveUp+s.upTo(2*time.Second), func() { s.apply(step) })
		s.after(gaveUp, lost)
	default:
		s.after(there, func() {
			v, err := s.apply(step)
			s.after(back, func() { answer(v, err) })
		})
	}
}

func (s *sim) apply(step cluster.Step) (cluster.View, error) {
	if s.giftsIgnoreEpoch {
		for i, g := range step.Give {
			if now := s.table.Lease(g.Lease.Shard); now.Owner == step.Node {
				step.Give[i].Lease = now
			}
		}
	}
	if s.forgetIgnoresBeats {
		for i, f := range step.Forget {
			step.Forget[i].Beats = s.table.Beats(f.Node)
		}
	}
	return s.table.Beat(context.Background(), step)
}

// spread sends news to the other nodes. Some get them late, some never.
func (s *sim) spread(from *simNode, news cluster.News) {
	if news.Epoch == 0 {
		return
	}
	if s.hearsGaps {
		news.Since = 0
	}
	for _, n := range s.nodes {
		if n == from {
			continue
		}
		switch late := s.random.IntN(8); {
		case late == 0 && !s.quiet:
			s.after(s.upTo(4*time.Second), func() { s.hear(n, news) })
		case late > 1:
			s.after(s.delay(), func() { s.hear(n, news) })
		}
	}
}

// hear processes news once the node is no longer paused.
func (s *sim) hear(n *simNode, news cluster.News) {
	switch {
	case n.state == nil:
	case n.paused > s.now:
		s.at(n.paused, func() { s.hear(n, news) })
	default:
		n.state.Hear(news)
	}
}

// turn is a beat in flight.
type turn struct {
	node  *simNode
	state *cluster.State
	step  cluster.Step
	begin time.Duration // by the node's clock
}

// answered ends a turn. A response to a paused node waits for it.
func (s *sim) answered(u turn, v cluster.View, err error) {
	n := u.node
	if n.state != u.state {
		return
	}
	if n.paused > s.now {
		s.at(n.paused, func() { s.answered(u, v, err) })
		return
	}
	if err == nil {
		s.spread(n, cluster.NewsOf(u.step, v))
	}
	now := n.clock(s.now)
	next := u.state.NextBeat(u.begin)
	switch forgotten := errors.Is(err, cluster.ErrForgotten); {
	case forgotten && s.forgottenGoesOn:
		u.state.Observe(cluster.View{}, u.begin, now)
		next = now + 100*time.Millisecond
	case forgotten:
		u.state.Forget()
		n.state = nil
		if !u.step.Leaving {
			s.start(n)
		}
		return
	case err == nil && u.step.Leave:
		n.state = nil
		return
	case err == nil && u.state.Observe(v, u.begin, now):
		next = now
	}
	s.at(max(n.real(next), s.now+time.Millisecond), func() { s.beat(n, u.state) })
}

// fault is something that goes wrong, or that an operator does.
func (s *sim) fault() {
	n := s.nodes[s.random.IntN(len(s.nodes))]
	switch s.random.IntN(7) {
	case 0: // kill -9
		n.state = nil
		s.after(s.upTo(4*time.Second), func() { s.start(n) })
	case 1:
		n.paused = s.now + s.upTo(5*time.Second)
	case 2:
		n.cut = s.now + s.upTo(5*time.Second)
	case 3: // stopped, and started again
		if n.state != nil {
			n.state.Stop()
		}
		s.after(s.upTo(6*time.Second), func() { s.start(n) })
	case 4: // the database stalls
		until := s.now + s.upTo(4*time.Second)
		for _, n := range s.nodes {
			n.cut = until
		}
	case 5: // a restart that no other node notices
		n.state = nil
		s.start(n)
	case 6: // it cannot serve for a while
		if st := n.state; st != nil {
			st.SetUnfit(true)
			s.after(s.upTo(6*time.Second), func() { st.SetUnfit(false) })
		}
	}
}

// mend ends all faults, and starts the stopped nodes.
func (s *sim) mend() {
	s.quiet = true
	for _, n := range s.nodes {
		n.paused, n.cut = 0, 0
		if n.state != nil {
			n.state.SetUnfit(false)
		}
		s.start(n)
	}
}

func (s *sim) upTo(d time.Duration) time.Duration { return time.Duration(s.random.Int64N(int64(d))) }

// delay returns the duration of one direction, which is usually short.
func (s *sim) delay() time.Duration {
	if !s.quiet && s.random.IntN(20) == 0 {
		return s.upTo(800 * time.Millisecond)
	}
	return s.upTo(10 * time.Millisecond)
}

func (s *sim) after(d time.Duration, do func()) { s.at(s.now+d, do) }

func (s *sim) at(t time.Duration, do func()) {
	heap.Push(&s.events, event{at: t, number: s.random.Uint64(), do: do})
}

// event is something that happens at a time. Events at the same time are ordered by their random numbers.
type event struct {
	at     time.Duration
	number uint64
	do     func()
}

type events []event

func (e events) Len() int      { return len(e) }
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e events) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(e[i].at, e[j].at), cmp.Compare(e[i].number, e[j].number)) < 0
}
func (e *events) Push(x any) { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = slices.Delete(*e, len(*e)-1, len(*e))
	return last
}
