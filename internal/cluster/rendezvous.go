package cluster

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
)

// weight orders the nodes for a shard.
func weight(n NodeID, s Shard) uint64 {
	var b [len(n) + 2]byte
	copy(b[:], n[:])
	binary.BigEndian.PutUint16(b[len(n):], uint16(s))
	h := sha256.Sum256(b[:])
	return binary.BigEndian.Uint64(h[:])
}

// candidate is a node that may own shards, with its weights. They are computed once for each node and
// not at each beat.
type candidate struct {
	id      NodeID
	weights []uint64 // by shard
}

func newCandidate(n NodeID, shards int) *candidate {
	c := &candidate{id: n, weights: make([]uint64, shards)}
	for s := range c.weights {
		c.weights[s] = weight(n, Shard(s))
	}
	return c
}

// winner returns the candidate that is to own a shard, by rendezvous hashing: the one with the largest weight
// (Thaler and Ravishankar, "A Name-Based Mapping Scheme for Rendezvous", 1996). It is zero without candidates.
func winner(all []*candidate, s Shard) (best NodeID) {
	top := uint64(0)
	for _, c := range all {
		w := c.weights[s]
		if best == (NodeID{}) || w > top || w == top && bytes.Compare(c.id[:], best[:]) > 0 {
			best, top = c.id, w
		}
	}
	return best
}
