package cluster

import (
	"slices"
	"time"
)

// state is one node's view of the others, and its decisions. It has no clock and no goroutine: times are passed in and
// come from the node's own steady clock. Callers must serialize the calls.
type state struct {
	self    NodeID
	timing  timing
	leases  []Lease // by shard
	leaving []phase // by shard: progress of giving the lease away
	epoch   Epoch   // of the latest view
	members map[NodeID]*member
	renewed time.Duration // start of the latest successful beat
	gains   uint64        // increases when the node becomes the owner of shards
	joined  bool          // false once the node has been forgotten
	stops   bool          // the node is being stopped
	waits   bool          // the node is not prepared to own shards yet
	unfit   bool          // the node cannot serve
}

// member is a node of the latest view.
type member struct {
	Node
	*candidate
	seen time.Duration // end of the beat that first showed Beats
}

// phase is the progress of giving a lease away.
type phase uint8

const (
	kept     phase = iota
	draining       // no new work is started; earlier work may be in flight
	drained        // no work is in flight: the lease may be given away
)

// newState returns the state of a node that is about to join.
func newState(self NodeID, shards int) *state {
	s := &state{self: self, timing: defaultTiming(), leases: make([]Lease, shards), leaving: make([]phase, shards),
		members: map[NodeID]*member{}, joined: true}
	for i := range s.leases {
		s.leases[i].Shard = Shard(i)
	}
	return s
}

// observe processes the result of a beat that lasted from begin to end. It reports whether members or leases changed,
// so that there may be something to do at once.
func (s *state) observe(v View, begin, end time.Duration) (changed bool) {
	if end >= s.endOfBelief() {
		s.gains++
	}
	s.renewed = max(s.renewed, begin)
	changed = s.observeNodes(v.Nodes, end) || v.Epoch > s.epoch
	for _, l := range v.Leases {
		s.observeLease(l)
	}
	s.epoch = max(s.epoch, v.Epoch)
	return changed
}

func (s *state) observeNodes(nodes []Node, now time.Duration) (changed bool) {
	members := make(map[NodeID]*member, len(nodes))
	for _, n := range nodes {
		m, known := s.members[n.ID]
		switch {
		case !known:
			m = &member{Node: n, candidate: newCandidate(n.ID, len(s.leases)), seen: now}
			changed = true
		case n.Beats > m.Beats:
			changed = changed || n.Leaving != m.Leaving
			m.Node, m.seen = n, now
		}
		members[n.ID] = m
	}
	changed = changed || len(members) != len(s.members)
	s.members = members
	return changed
}

// observeLease processes one lease. A lease that moved to the node, or returned to it with another epoch, is kept.
func (s *state) observeLease(l Lease) {
	if int(l.Shard) >= len(s.leases) || l.Epoch <= s.leases[l.Shard].Epoch {
		return
	}
	s.leases[l.Shard] = l
	s.leaving[l.Shard] = kept
	if l.Owner == s.self {
		s.gains++
	}
}

// forget records that the node is no longer a member. It owns nothing from now on.
func (s *state) forget() { s.joined = false }

// ownLeases returns the leases that the node owns in the latest view.
func (s *state) ownLeases() (own []Lease) {
	for _, l := range s.leases {
		if l.Owner == s.self {
			own = append(own, l)
		}
	}
	return own
}

// isLeaving reports whether the node should own nothing.
func (s *state) isLeaving() bool { return s.stops || s.waits || s.unfit }

// endOfBelief returns the time from which on the node owns nothing, unless a beat succeeds before.
func (s *state) endOfBelief() time.Duration { return s.renewed + s.timing.ownFor }

// owns reports whether the node may start work for a shard at the given time.
func (s *state) owns(shard Shard, now time.Duration) bool {
	return s.joined && s.leases[shard].Owner == s.self && s.leaving[shard] == kept && now < s.endOfBelief()
}

// owner returns the node that has the lease of a shard. It may be dead.
func (s *state) owner(shard Shard) (Node, bool) {
	m, found := s.members[s.leases[shard].Owner]
	if !found {
		return Node{}, false
	}
	return m.Node, true
}

// silent returns the nodes that should be forgotten, sorted by ID.
func (s *state) silent(now time.Duration) (found []Sighting) {
	for _, m := range s.members {
		if m.Node.ID != s.self && now-m.seen >= s.timing.deadAfter {
			found = append(found, Sighting{Node: m.Node.ID, Beats: m.Beats})
		}
	}
	slices.SortFunc(found, func(a, b Sighting) int { return slices.Compare(a.Node[:], b.Node[:]) })
	return found
}
