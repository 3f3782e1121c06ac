package rekey

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/storage"
)

// kindUnfinished is the record of the service that lists the master keys that may still be needed, under key "". It
// does not exist while one key decrypts everything.
const kindUnfinished storage.Kind = "resealing"

// unfinished is a change of master keys that is not complete.
type unfinished struct {
	Keys []string `json:"keys"` // fingerprints of all keys that may have sealed something
}

func notes(r storage.RecordStore) records.Store[unfinished] {
	return records.New[unfinished](r, kindUnfinished, "")
}

// BeginRekeying records that from now on some keys of the store may be sealed under each of the ring's master keys.
// It must be called before the first key is re-encrypted or generated, so that the note survives a process that ends
// at any moment. Only a Run that found nothing left removes the note. If the ring has only one key, BeginRekeying
// does nothing.
func BeginRekeying(ctx context.Context, store storage.RecordStore, ring *seal.Keyring) error {
	if len(ring.Fingerprints()) == 1 {
		return nil
	}
	for range tries {
		note, err := notes(store).Get(ctx, id.Service, "")
		if err != nil {
			return fmt.Errorf("begin to reseal: %w", err)
		}
		keys := slices.Concat(note.Value.Keys, ring.Fingerprints())
		slices.Sort(keys)
		if keys = slices.Compact(keys); len(keys) == len(note.Value.Keys) {
			return nil
		}
		note.Value.Keys = keys
		change, err := notes(store).Put(note)
		if err == nil {
			err = store.Write(ctx, id.Service, []storage.Change{change})
		}
		if !errors.Is(err, storage.ErrStale) {
			return wrapUnlessNil("begin to reseal", err)
		}
	}
	return errors.New("begin to reseal: too many concurrent changes")
}

// CheckMasterKeys returns an error if the ring lacks a master key that may still be needed.
func CheckMasterKeys(ctx context.Context, store storage.RecordStore, ring *seal.Keyring) error {
	note, err := notes(store).Get(ctx, id.Service, "")
	if err != nil {
		return fmt.Errorf("read which master keys are needed: %w", err)
	}
	given := ring.Fingerprints()
	for _, key := range note.Value.Keys {
		if !slices.Contains(given, key) {
			return fmt.Errorf("some keys in the store may be sealed under the master key with fingerprint %s, "+
				"which is missing: start with it as --older-master-key-file until all keys are resealed (given: %v)",
				key, given)
		}
	}
	return nil
}

// deleteNote deletes the note that was read before a complete Run.
func (r *Rekeyer) deleteNote(ctx context.Context, note records.Versioned[unfinished]) error {
	if !note.Exists() {
		return nil
	}
	return wrapUnlessNil("end resealing",
		r.Store.Write(ctx, id.Service, []storage.Change{{Kind: kindUnfinished, If: note.Version}}))
}

func wrapUnlessNil(step string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", step, err)
}
