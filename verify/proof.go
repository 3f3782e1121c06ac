package verify

import (
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// Inclusion is an inclusion proof as contained in a bundle. Hashes begin with the leaf's sibling
// (RFC 6962 section 2.1.1).
type Inclusion struct {
	LogIndex id.Index  `json:"log_index"`
	TreeSize id.Index  `json:"tree_size"`
	RootHash id.Hash   `json:"root_hash"`
	Hashes   []id.Hash `json:"hashes"`
}

// InclusionAnswer is the answer to transparency/inclusion.
type InclusionAnswer struct {
	LogIndex id.Index  `json:"log_index"`
	TreeSize id.Index  `json:"tree_size"`
	LeafHash id.Hash   `json:"leaf_hash"`
	RootHash id.Hash   `json:"root_hash"`
	Hashes   []id.Hash `json:"hashes"`
}

// Consistency is the answer to transparency/consistency: a proof that the tree of To leaves extends
// the tree of From leaves (RFC 6962 section 2.1.2).
type Consistency struct {
	From     id.Index  `json:"from"`
	To       id.Index  `json:"to"`
	FromRoot id.Hash   `json:"from_root"`
	ToRoot   id.Hash   `json:"to_root"`
	Hashes   []id.Hash `json:"hashes"`
}

// CheckInclusionAnswer checks that a proves leaf at index in the tree of checkpoint c. The caller
// MUST have opened c with the log's key. Errors wrap ErrMismatch or tlog.ErrProof.
func CheckInclusionAnswer(a InclusionAnswer, index id.Index, leaf id.Hash, c tlog.Checkpoint) error {
	if a.LeafHash != leaf {
		return fmt.Errorf("leaf_hash and the entry: %w", ErrMismatch)
	}
	return checkInclusion(Inclusion{a.LogIndex, a.TreeSize, a.RootHash, a.Hashes}, index, leaf, c)
}

func checkInclusion(p Inclusion, index id.Index, leaf id.Hash, c tlog.Checkpoint) error {
	if p.LogIndex != index {
		return fmt.Errorf("log_index and the proof's: %w", ErrMismatch)
	}
	if p.TreeSize != c.Size || p.RootHash != c.Root {
		return fmt.Errorf("tree_size, root_hash and checkpoint: %w", ErrMismatch)
	}
	return tlog.CheckInclusion(index, c.Size, leaf, p.Hashes, c.Root)
}

// CheckConsistencyAnswer checks that a proves that the tree of checkpoint to extends the tree of
// checkpoint from. The caller MUST have opened both with the log's key. An error then is evidence
// of a fork or of a broken server. Errors wrap ErrMismatch or tlog.ErrProof.
func CheckConsistencyAnswer(a Consistency, from, to tlog.Checkpoint) error {
	if from.Origin != to.Origin {
		return fmt.Errorf("origins of the checkpoints: %w", ErrMismatch)
	}
	if a.From != from.Size || a.To != to.Size {
		return fmt.Errorf("from, to and the checkpoints' sizes: %w", ErrMismatch)
	}
	if a.FromRoot != from.Root || a.ToRoot != to.Root {
		return fmt.Errorf("from_root, to_root and the checkpoints' roots: %w", ErrMismatch)
	}
	return tlog.CheckConsistency(from.Size, to.Size, from.Root, to.Root, a.Hashes)
}
