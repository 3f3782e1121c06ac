package publicapi

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/verify"
)

// Proofs are rendered without package json: they contain many hashes and are the most frequent requests.

// renderInclusion renders an inclusion proof.
func renderInclusion(a *verify.InclusionAnswer) response {
	b := make([]byte, 0, maxProofLength(a.Hashes))
	b = appendNumber(append(b, `{"log_index":`...), a.LogIndex)
	b = appendNumber(append(b, `,"tree_size":`...), a.TreeSize)
	b = appendHash(append(b, `,"leaf_hash":`...), a.LeafHash)
	b = appendHash(append(b, `,"root_hash":`...), a.RootHash)
	return finishProof(b, a.Hashes, proofTag(a.RootHash, a.LogIndex))
}

// renderConsistency renders a consistency proof.
func renderConsistency(c *verify.Consistency) response {
	b := make([]byte, 0, maxProofLength(c.Hashes))
	b = appendNumber(append(b, `{"from":`...), c.From)
	b = appendNumber(append(b, `,"to":`...), c.To)
	b = appendHash(append(b, `,"from_root":`...), c.FromRoot)
	b = appendHash(append(b, `,"to_root":`...), c.ToRoot)
	return finishProof(b, c.Hashes, proofTag(c.ToRoot, c.From))
}

// formOfProofs is part of the ETag of each proof. It must change if the rendering of proofs changes.
const formOfProofs = 1

// proofTag returns the ETag of a proof to a root without reading the proof. The root and the index determine the proof:
// a root commits to the size and all leaves of its tree.
func proofTag(root id.Hash, at id.Index) string {
	var of [1 + len(root) + 8]byte // one block of SHA-256
	of[0] = formOfProofs
	copy(of[1:], root[:])
	binary.BigEndian.PutUint64(of[1+len(root):], uint64(at))
	return tagOf(sha256.Sum256(of[:]))
}

// maxProofLength bounds the length of a proof in JSON.
func maxProofLength(hashes []id.Hash) int { return 256 + (2*len(id.Hash{})+len(`"",`))*len(hashes) }

// finishProof appends the hashes of a proof and returns the response.
func finishProof(b []byte, hashes []id.Hash, tag string) response {
	b = append(b, `,"hashes":[`...)
	for i, h := range hashes {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendHash(b, h)
	}
	return response{media: edge.MediaJSON, cache: revalidate, body: append(b, "]}"...), tag: tag}
}

func appendNumber(b []byte, n id.Index) []byte { return strconv.AppendUint(b, uint64(n), 10) }

func appendHash(b []byte, h id.Hash) []byte {
	return append(hex.AppendEncode(append(b, '"'), h[:]), '"')
}
