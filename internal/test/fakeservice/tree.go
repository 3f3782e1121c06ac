package fakeservice

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// split returns the largest power of two below n, n > 1.
func split(n int) int {
	k := 1
	for k*2 < n {
		k *= 2
	}
	return k
}

// root is MTH of RFC 6962 section 2.1.
func root(leaves []id.Hash) id.Hash {
	switch n := len(leaves); n {
	case 0:
		return tlog.EmptyRoot()
	case 1:
		return leaves[0]
	default:
		k := split(n)
		return tlog.NodeHash(root(leaves[:k]), root(leaves[k:]))
	}
}

// path is PATH of RFC 6962 section 2.1.1.
func path(index int, leaves []id.Hash) []id.Hash {
	if len(leaves) == 1 {
		return []id.Hash{}
	}
	k := split(len(leaves))
	if index < k {
		return append(path(index, leaves[:k]), root(leaves[k:]))
	}
	return append(path(index-k, leaves[k:]), root(leaves[:k]))
}

// extension is PROOF of RFC 6962 section 2.1.2; empty from size 0.
func extension(from int, leaves []id.Hash) []id.Hash {
	if from == 0 {
		return []id.Hash{}
	}
	return subproof(from, leaves, true)
}

func subproof(from int, leaves []id.Hash, whole bool) []id.Hash {
	if from == len(leaves) {
		if whole {
			return []id.Hash{}
		}
		return []id.Hash{root(leaves)}
	}
	k := split(len(leaves))
	if from <= k {
		return append(subproof(from, leaves[:k], whole), root(leaves[k:]))
	}
	return append(subproof(from-k, leaves[k:], false), root(leaves[:k]))
}
