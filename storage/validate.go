package storage

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/id"
)

// Validate returns an error if b contradicts itself: event indices that do not continue Expect.Size, a Head with
// another size or without a root, a tile of the wrong length, an event without an ID or texts, an invalid kind, or an
// impossible erasure. Every engine rejects such a batch.
func (b *Batch) Validate() error {
	if b.Head.Root == (id.Hash{}) {
		return fmt.Errorf("batch: head without a root")
	}
	if b.Head.Size != b.Expect.Size+id.Index(len(b.Events)) {
		return fmt.Errorf("batch: %d events cannot continue size %d to size %d", len(b.Events), b.Expect.Size, b.Head.Size)
	}
	for i := range b.Events {
		e := &b.Events[i]
		if e.Index != b.Expect.Size+id.Index(i) || e.ID == "" || e.Archived {
			return fmt.Errorf("batch: event %d has index %d, expected %d, or has no ID or no texts", i, e.Index, b.Expect.Size+id.Index(i))
		}
	}
	if err := b.validateErasures(); err != nil {
		return err
	}
	for i := range b.Tiles {
		if len(b.Tiles[i].Hashes) != TileSize {
			return fmt.Errorf("batch: tile %d has %d bytes", i, len(b.Tiles[i].Hashes))
		}
	}
	return ValidateChanges(b.Changes)
}

// Erases reports whether an event of the batch erases others.
func (b *Batch) Erases() bool {
	return slices.ContainsFunc(b.Events, func(e Event) bool { return len(e.Erases) > 0 })
}

// TouchesErased reports whether the batch erases events, or contains events that were erased in another store.
func (b *Batch) TouchesErased() bool {
	return b.Erases() || slices.ContainsFunc(b.Events, func(e Event) bool { return e.ErasedBy != 0 })
}

// ErasedBy returns, for each index that the batch erases, the index of the first event that erases it.
func (b *Batch) ErasedBy() map[id.Index]id.Index {
	by := make(map[id.Index]id.Index)
	for i := range b.Events {
		for _, r := range b.Events[i].Erases {
			for at := r.Begin; at < r.End; at++ {
				if by[at] == 0 {
					by[at] = b.Events[i].Index
				}
			}
		}
	}
	return by
}

// validateErasures rejects an erasure of events that are not stored yet or of more than MaxErased events, and an erased
// event that has an envelope or an ErasedBy that is not greater than its own index.
func (b *Batch) validateErasures() error {
	erased := 0
	for i := range b.Events {
		e := &b.Events[i]
		if e.ErasedBy != 0 && (e.Envelope != nil || e.ErasedBy <= e.Index) {
			return fmt.Errorf("batch: event %d is erased by event %d", e.Index, e.ErasedBy)
		}
		for _, r := range e.Erases {
			if r.Begin >= r.End || r.End > b.Expect.Size {
				return fmt.Errorf("batch: event %d erases [%d, %d) of %d", e.Index, r.Begin, r.End, b.Expect.Size)
			}
			if r.End-r.Begin > MaxErased || erased+r.Len() > MaxErased {
				return fmt.Errorf("batch: more than %d events are erased", MaxErased)
			}
			erased += r.Len()
		}
	}
	return nil
}

// ValidateChanges returns an error if a change has an empty kind or a kind with a zero byte.
func ValidateChanges(changes []Change) error {
	for i := range changes {
		if k := changes[i].Kind; k == "" || strings.IndexByte(string(k), 0) >= 0 {
			return fmt.Errorf("change %d: kind is empty or has a zero byte", i)
		}
	}
	return nil
}

// Continues reports whether the guard admits an append that expects want to a ledger with head h: Size, Root, Epoch and
// ConfigVersion are equal.
func (h Head) Continues(want Head) bool {
	return h.Size == want.Size && h.Root == want.Root && h.Epoch == want.Epoch && h.ConfigVersion == want.ConfigVersion
}

// ValidateDrop rejects a drop of the service's own partition, and a drop without a condition.
func ValidateDrop(t id.Tenant, mark Record) error {
	if t == id.Service || mark.Version == 0 || mark.Version == AnyVersion {
		return errors.New("drop: requires a tenant and the version of one of its records")
	}
	return ValidateChanges([]Change{{Kind: mark.Kind, Key: mark.Key}})
}
