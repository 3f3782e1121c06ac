package cluster

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
)

// weight returns the rank of a node for a shard.
func weight(n NodeID, s Shard) uint64 {
	var b [len(n) + 2]byte
	copy(b[:], n[:])
	binary.BigEndian.PutUint16(b[len(n):], uint16(s))
	h := sha256.Sum256(b[:])
	return binary.BigEndian.Uint64(h[:])
}

// candidate is a node that may own shards, with its weights, which are computed only once per node.
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

// winner returns the candidate that should own a shard, by rendezvous hashing: the one with the largest weight (Thaler
// and Ravishankar, "A Name-Based Mapping Scheme for Rendezvous", 1996). It returns the zero NodeID if there are no
// candidates.
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
