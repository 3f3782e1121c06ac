package cluster

import (
	"slices"
	"time"
)

// plan returns the next step of the node, and the leases that it has to drain before it can give them away. The caller
// must drain them and then call finishDrain.
func (s *state) plan(now time.Duration) (step Step, drain []Lease) {
	step = Step{Node: s.self, Known: s.epoch, Leaving: s.isLeaving(), Forget: s.silent(now)}
	candidates := s.candidates(step.Forget)
	for i := range s.leases {
		drain = append(drain, s.planShard(&step, Shard(i), candidates)...)
	}
	step.Leave = s.stops && len(drain) == 0 && s.isEmptied(len(candidates) > 0)
	return step, drain
}

// candidates returns the nodes that may own shards: those that are neither silent nor leaving. If there is none, a node
// that cannot serve keeps its shards, because it can still answer reads.
func (s *state) candidates(silent []Sighting) (all []*candidate) {
	for _, m := range s.members {
		dead := slices.ContainsFunc(silent, func(g Sighting) bool { return g.Node == m.Node.ID })
		away := m.Leaving
		if m.Node.ID == s.self {
			away = s.isLeaving()
		}
		if !dead && !away {
			all = append(all, m.candidate)
		}
	}
	if own := s.members[s.self]; len(all) == 0 && own != nil && !s.stops && !s.waits {
		all = append(all, own.candidate)
	}
	return all
}

// planShard adds the changes of one shard to the step. It returns the lease if it must be drained; the node then starts
// no new work for it.
func (s *state) planShard(step *Step, shard Shard, candidates []*candidate) []Lease {
	lease, best := s.leases[shard], winner(candidates, shard)
	switch mine := lease.Owner == s.self; {
	case mine && best == s.self && s.leaving[shard] != kept:
		// The receiver of the gift is gone. With a new epoch, a late gift has no effect.
		step.Take = append(step.Take, shard)
	case mine && best != s.self && s.leaving[shard] == kept:
		s.leaving[shard] = draining
		return []Lease{lease}
	case mine && best != s.self && best != (NodeID{}) && s.leaving[shard] == drained:
		step.Give = append(step.Give, Gift{Lease: lease, To: best})
	case !mine && best == s.self && !s.isMember(lease.Owner, step.Forget):
		step.Take = append(step.Take, shard)
	}
	return nil
}

// isMember reports whether a node is a member that is not about to be forgotten.
func (s *state) isMember(n NodeID, silent []Sighting) bool {
	_, found := s.members[n]
	return found && !slices.ContainsFunc(silent, func(g Sighting) bool { return g.Node == n })
}

// finishDrain records that no work is in flight for leases that plan returned. It ignores leases that have changed in
// the meantime.
func (s *state) finishDrain(leases []Lease) {
	for _, l := range leases {
		if s.leases[l.Shard] == l && s.leaving[l.Shard] == draining {
			s.leaving[l.Shard] = drained
		}
	}
}

// isEmptied reports whether a node that is being stopped may leave: no work is in flight, and it either owns no lease
// or no other node could take one.
func (s *state) isEmptied(others bool) bool {
	return !slices.ContainsFunc(s.ownLeases(), func(l Lease) bool { return others || s.leaving[l.Shard] != drained })
}

// nextBeat returns when the beat after one that started at begin is due. It is early if a node can be forgotten
// earlier.
func (s *state) nextBeat(begin time.Duration) time.Duration {
	next := begin + s.timing.beatEvery
	for _, m := range s.members {
		if due := m.seen + s.timing.deadAfter; m.Node.ID != s.self && due > begin {
			next = min(next, due)
		}
	}
	return next
}
