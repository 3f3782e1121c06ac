package fakeservice

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// splitPoint returns the largest power of two less than n, for n > 1.
func splitPoint(n int) int {
	k := 1
	for k*2 < n {
		k *= 2
	}
	return k
}

// subtreeRoot is MTH of RFC 6962, section 2.1.
func subtreeRoot(leaves []id.Hash) id.Hash {
	switch n := len(leaves); n {
	case 0:
		return tlog.EmptyRoot()
	case 1:
		return leaves[0]
	default:
		k := splitPoint(n)
		return tlog.NodeHash(subtreeRoot(leaves[:k]), subtreeRoot(leaves[k:]))
	}
}

// inclusionPath is PATH of RFC 6962, section 2.1.1.
func inclusionPath(index int, leaves []id.Hash) []id.Hash {
	if len(leaves) == 1 {
		return []id.Hash{}
	}
	k := splitPoint(len(leaves))
	if index < k {
		return append(inclusionPath(index, leaves[:k]), subtreeRoot(leaves[k:]))
	}
	return append(inclusionPath(index-k, leaves[k:]), subtreeRoot(leaves[:k]))
}

// consistencyPath is PROOF of RFC 6962, section 2.1.2. It is empty for size 0.
func consistencyPath(from int, leaves []id.Hash) []id.Hash {
	if from == 0 {
		return []id.Hash{}
	}
	return consistencySubproof(from, leaves, true)
}

func consistencySubproof(from int, leaves []id.Hash, whole bool) []id.Hash {
	if from == len(leaves) {
		if whole {
			return []id.Hash{}
		}
		return []id.Hash{subtreeRoot(leaves)}
	}
	k := splitPoint(len(leaves))
	if from <= k {
		return append(consistencySubproof(from, leaves[:k], whole), subtreeRoot(leaves[k:]))
	}
	return append(consistencySubproof(from-k, leaves[k:], false), subtreeRoot(leaves[:k]))
}
