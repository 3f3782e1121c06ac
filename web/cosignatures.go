package web

import (
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
	"github.com/agentledger/agentledger/verify"
)

// cosigned is the latest cosignature of a witness.
type cosigned struct {
	At   id.Instant
	Size id.Index
}

// findCosignatures returns the latest valid cosignature of each witness of a policy on signed checkpoints of one log,
// by the witness's key. It ignores notes signed by unknown keys.
func findCosignatures(policy *trust.Policy, keys []verify.LogKey, notes ...string) (map[string]cosigned, error) {
	newest := make(map[string]cosigned)
	for _, text := range notes {
		if text == "" {
			continue
		}
		note, err := tlog.ParseNote([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("read cosignatures: %w", err)
		}
		size, known := sizeOf(note, keys)
		if !known {
			continue
		}
		for _, c := range policy.Cosignatures(note) {
			if key := c.Witness.Key.String(); newest[key].At < c.Time {
				newest[key] = cosigned{c.Time, size}
			}
		}
	}
	return newest, nil
}

// sizeOf returns the tree size of a checkpoint that one of the keys signed.
func sizeOf(note tlog.Note, keys []verify.LogKey) (size id.Index, known bool) {
	for _, k := range keys {
		if tree, err := note.OpenCheckpoint(k.Key); err == nil {
			return tree.Size, true
		}
	}
	return 0, false
}
