package verify

import (
	"crypto/sha256"
	"fmt"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

func leafHash(e event.Entry) id.Hash {
	text := fmt.Sprintf(`{"prev":"%s","record":"%s","seq":%d,"v":1}`, e.Prev, e.Record, e.Seq)
	return sha256.Sum256([]byte("\x00" + text))
}

// treeRoot returns MTH of RFC 6962 section 2.1 over leaf hashes.
func treeRoot(leaves []id.Hash) id.Hash {
	switch len(leaves) {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return leaves[0]
	}
	k := split(len(leaves))
	left, right := treeRoot(leaves[:k]), treeRoot(leaves[k:])
	return sha256.Sum256(append(append([]byte{1}, left[:]...), right[:]...))
}

// treePath returns PATH(m, D[n]) of RFC 6962 section 2.1.1.
func treePath(m int, leaves []id.Hash) []id.Hash {
	if len(leaves) == 1 {
		return nil
	}
	k := split(len(leaves))
	if m < k {
		return append(treePath(m, leaves[:k]), treeRoot(leaves[k:]))
	}
	return append(treePath(m-k, leaves[k:]), treeRoot(leaves[:k]))
}

// treeGrowth returns SUBPROOF(m, D[n], whole) of RFC 6962 section 2.1.2.
func treeGrowth(m int, leaves []id.Hash, whole bool) []id.Hash {
	if m == len(leaves) {
		if whole {
			return nil
		}
		return []id.Hash{treeRoot(leaves)}
	}
	k := split(len(leaves))
	if m <= k {
		return append(treeGrowth(m, leaves[:k], whole), treeRoot(leaves[k:]))
	}
	return append(treeGrowth(m-k, leaves[k:], false), treeRoot(leaves[:k]))
}

// split returns the largest power of two below n.
func split(n int) int {
	k := 1
	for k*2 < n {
		k *= 2
	}
	return k
}
