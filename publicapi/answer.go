package publicapi

import (
	"encoding/hex"
	"strconv"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/verify"
)

// Proofs are rendered by hand: they are numbers and hashes, many, and asked for
// more often than all else.

// renderInclusion renders a.
func renderInclusion(a *verify.InclusionAnswer) response {
	b := make([]byte, 0, maxProofLength(a.Hashes))
	b = appendNumber(append(b, `{"log_index":`...), a.LogIndex)
	b = appendNumber(append(b, `,"tree_size":`...), a.TreeSize)
	b = appendHash(append(b, `,"leaf_hash":`...), a.LeafHash)
	b = appendHash(append(b, `,"root_hash":`...), a.RootHash)
	return finishProof(b, a.Hashes)
}

// renderConsistency renders c.
func renderConsistency(c *verify.Consistency) response {
	b := make([]byte, 0, maxProofLength(c.Hashes))
	b = appendNumber(append(b, `{"from":`...), c.From)
	b = appendNumber(append(b, `,"to":`...), c.To)
	b = appendHash(append(b, `,"from_root":`...), c.FromRoot)
	b = appendHash(append(b, `,"to_root":`...), c.ToRoot)
	return finishProof(b, c.Hashes)
}

// maxProofLength is the length that an answer has at most.
func maxProofLength(hashes []id.Hash) int { return 256 + (2*len(id.Hash{})+len(`"",`))*len(hashes) }

// finishProof ends an answer with the hashes of its proof.
func finishProof(b []byte, hashes []id.Hash) response {
	b = append(b, `,"hashes":[`...)
	for i, h := range hashes {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendHash(b, h)
	}
	return response{media: edge.MediaJSON, cache: revalidate, body: append(b, "]}"...)}
}

func appendNumber(b []byte, n id.Index) []byte { return strconv.AppendUint(b, uint64(n), 10) }

func appendHash(b []byte, h id.Hash) []byte {
	return append(hex.AppendEncode(append(b, '"'), h[:]), '"')
}
