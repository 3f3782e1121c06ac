package cluster

import (
	"time"
)

// State is the state of a node for the simulation.
type State = state

// Begin returns the initial state of a node, with the default times.
func Begin(self NodeID, shards int, ownFor, deadAfter time.Duration) *State {
	s := newState(self, shards)
	s.timing.ownFor, s.timing.deadAfter = ownFor, deadAfter
	return s
}

// Times returns the default times: between beats, of a node's own ownership, and until others forget it.
func Times() (beatEvery, ownFor, deadAfter time.Duration) {
	t := defaultTiming()
	return t.beatEvery, t.ownFor, t.deadAfter
}

func (s *state) Hear(n News) bool                              { return s.hear(n) }
func (s *state) Plan(now time.Duration) (Step, []Lease)        { return s.plan(now) }
func (s *state) Observe(v View, begin, end time.Duration) bool { return s.observe(v, begin, end) }
func (s *state) FinishDrain(leases []Lease)                    { s.finishDrain(leases) }
func (s *state) Owns(shard Shard, now time.Duration) bool      { return s.owns(shard, now) }
func (s *state) OwnerOf(shard Shard) (Node, bool)              { return s.owner(shard) }
func (s *state) NextBeat(begin time.Duration) time.Duration    { return s.nextBeat(begin) }
func (s *state) Believes(now time.Duration) bool               { return s.joined && now < s.endOfBelief() }
func (s *state) Stop()                                         { s.stops = true }
func (s *state) SetUnfit(unfit bool)                           { s.unfit = unfit }
func (s *state) Forget()                                       { s.forget() }

// NewsOf returns the news of a step.
func NewsOf(s Step, v View) News { return newsOf(s, v) }

// Winner returns the owner of a shard among nodes.
func Winner(nodes []NodeID, shard Shard) NodeID {
	var all []*candidate
	for _, n := range nodes {
		all = append(all, newCandidate(n, int(shard)+1))
	}
	return winner(all, shard)
}
