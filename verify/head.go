package verify

import (
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// Head is the public end of one organization's log. The latest members are nil, null in JSON, if
// the log is empty. LatestLeafHash and LatestPublishedAt are also nil if the service has lost the
// tree of its own checkpoint; Fault then names the fault.
type Head struct {
	OrganizationSlug  id.Slug     `json:"organization_slug"`
	TreeSize          id.Index    `json:"tree_size"`
	LatestLogIndex    *id.Index   `json:"latest_log_index"`
	LatestLeafHash    *id.Hash    `json:"latest_leaf_hash"`
	LatestPublishedAt *id.Instant `json:"latest_published_at"`
	RootHash          id.Hash     `json:"root_hash"`
	Origin            id.Origin   `json:"origin"`
	Checkpoint        string      `json:"checkpoint"` // the signed note
	// The operator's statement about a fault of the log, or "".
	Fault string `json:"fault,omitzero"`

	// The operator's statements about the frozen log that this log succeeds, and about
	// the successor of this log.
	Predecessor id.Origin `json:"predecessor,omitzero"`
	Successor   id.Origin `json:"successor,omitzero"`
}

// NewHead returns the head of a checkpoint c and its signed note. latest and published belong to
// the latest entry and are ignored if c has size 0.
func NewHead(slug id.Slug, c tlog.Checkpoint, note []byte, latest id.Hash, published id.Instant) Head {
	h := Head{OrganizationSlug: slug, TreeSize: c.Size, RootHash: c.Root, Origin: c.Origin, Checkpoint: string(note)}
	if c.Size > 0 {
		index := c.Size - 1
		h.LatestLogIndex, h.LatestLeafHash, h.LatestPublishedAt = &index, &latest, &published
	}
	return h
}

// CheckHead checks that key signed the head's checkpoint and that the other members agree with the
// checkpoint. Slug, fault, time and, in a log of more than one entry, the latest leaf hash are
// unverified operator claims. A head with a fault may omit both the latest leaf hash and the time.
// Errors wrap ErrMismatch or an error of tlog.
func CheckHead(h Head, key tlog.VerifierKey) (tlog.Checkpoint, error) {
	c, err := openCheckpoint(h.Checkpoint, h.Origin, key)
	if err != nil {
		return tlog.Checkpoint{}, fmt.Errorf("check head: %w", err)
	}
	if c.Size != h.TreeSize || c.Root != h.RootHash {
		return tlog.Checkpoint{}, fmt.Errorf("check head: tree_size, root_hash and checkpoint: %w", ErrMismatch)
	}
	if err := checkLatest(h, c); err != nil {
		return tlog.Checkpoint{}, fmt.Errorf("check head: %w", err)
	}
	return c, nil
}

// checkLatest checks the three members about the latest entry.
func checkLatest(h Head, c tlog.Checkpoint) error {
	if c.Size == 0 {
		if h.LatestLogIndex != nil || h.LatestLeafHash != nil || h.LatestPublishedAt != nil {
			return fmt.Errorf("a latest entry of an empty log: %w", ErrMismatch)
		}
		return nil
	}
	if h.LatestLogIndex == nil || *h.LatestLogIndex != c.Size-1 {
		return fmt.Errorf("latest_log_index and tree_size: %w", ErrMismatch)
	}
	if h.Fault != "" && h.LatestLeafHash == nil && h.LatestPublishedAt == nil {
		return nil
	}
	if h.LatestLeafHash == nil || h.LatestPublishedAt == nil {
		return fmt.Errorf("no latest entry: %w", ErrMismatch)
	}
	if c.Size == 1 && *h.LatestLeafHash != c.Root {
		return fmt.Errorf("latest_leaf_hash and the root over it alone: %w", ErrMismatch)
	}
	return nil
}

// openCheckpoint opens a note strictly: three lines, the given origin, signed by the key of that
// name.
func openCheckpoint(note string, origin id.Origin, key tlog.VerifierKey) (tlog.Checkpoint, error) {
	if key.Name() != string(origin) {
		return tlog.Checkpoint{}, errKeyName()
	}
	return tlog.OpenCheckpoint([]byte(note), key) // checks the origin against the key's name
}

func errKeyName() error { return fmt.Errorf("origin and name of the log key: %w", ErrMismatch) }
