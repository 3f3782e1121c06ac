// Package rekey moves the private keys of a store from older master keys to the newest one, while
// the service serves.
//
// Invariants:
//
//   - A record is replaced only as it was read, with the same keys sealed anew. A concurrent
//     change wins, and the record is examined again.
//   - Nothing else in a record changes, and no key is ever written unsealed.
//   - The set of master keys that may still be needed is on record from before the first key is
//     sealed anew until nothing is left to seal (BeginRekeying, CheckMasterKeys). So a store with
//     some keys on an older master key never starts without that key.
//   - A key that cannot be opened stays as it is and is reported.
package rekey

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Store is the part of an engine that rekeying needs.
type Store interface {
	storage.RecordStore
	Tenants(ctx context.Context) iter.Seq2[id.Tenant, error]
}

// Rekeyer moves all keys of a store.
type Rekeyer struct {
	Store   Store
	Ledgers *log.Ledgers
	Keyring *seal.Keyring // active: the newest master key
	Sealed  []seal.Record // every kind of record that holds keys
	Texts   []seal.Texts  // every kind of record that holds other sealed texts
}

// tries bounds how often one record is looked at that others change meanwhile.
const tries = 16

// Run goes through all organizations once and returns the number of records it has written. Its
// error joins the failures of single records. Without an error the older master keys open nothing in
// the store any more, and the note of BeginRekeying is gone.
func (r *Rekeyer) Run(ctx context.Context) (written int, err error) {
	note, err := notes(r.Store).Get(ctx, id.Service, "")
	if err != nil {
		return 0, fmt.Errorf("reseal: %w", err)
	}
	if written, err = r.rekeyPartition(ctx); err != nil {
		return written, err
	}
	return written, r.deleteNote(ctx, note)
}

func (r *Rekeyer) rekeyPartition(ctx context.Context) (written int, err error) {
	var failed []error
	for t, err := range r.Store.Tenants(ctx) {
		if err != nil {
			return written, fmt.Errorf("reseal: %w", err)
		}
		state, err := r.Ledgers.State(ctx, t)
		if ctx.Err() != nil {
			return written, fmt.Errorf("reseal: %w", ctx.Err())
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("reseal: tenant %d: %w", t, err))
			continue
		}
		for _, s := range r.Sealed {
			changed, err := r.rekeyRecord(ctx, state.Identity(), s)
			if err != nil {
				failed = append(failed, fmt.Errorf("reseal: %s: %w", state.Identity().Origin, err))
			}
			if changed {
				written++
			}
		}
		more, err := r.rekeyTexts(ctx, t)
		if err != nil {
			failed = append(failed, fmt.Errorf("reseal: %s: %w", state.Identity().Origin, err))
		}
		written += more
	}
	more, err := r.rekeyTexts(ctx, id.Service)
	if err != nil {
		failed = append(failed, fmt.Errorf("reseal: the service's own partition: %w", err))
	}
	return written + more, errors.Join(failed...)
}

// rekeyTexts seals the texts of a partition anew.
func (r *Rekeyer) rekeyTexts(ctx context.Context, t id.Tenant) (written int, err error) {
	var failed []error
	for _, s := range r.Texts {
		for record, err := range records.Scan(ctx, r.Store, t, s.Kind, records.Range{}, 0) {
			if err != nil {
				return written, errors.Join(append(failed, err)...)
			}
			changed, err := r.rekeyText(ctx, t, s, record.Key)
			if err != nil {
				failed = append(failed, fmt.Errorf("%s %q: %w", s.Kind, record.Key, err))
			}
			if changed {
				written++
			}
		}
	}
	return written, errors.Join(failed...)
}

func (r *Rekeyer) rekeyText(ctx context.Context, t id.Tenant, s seal.Texts, key string) (changed bool, err error) {
	return r.replaceRecord(ctx, t, s.Kind, key, func(value []byte) ([]byte, bool, error) {
		return s.Reseal(r.Keyring, key, value)
	})
}

// rekeyRecord moves the keys of one record.
func (r *Rekeyer) rekeyRecord(ctx context.Context, identity *log.Identity, s seal.Record) (changed bool, err error) {
	return r.replaceRecord(ctx, identity.Tenant, s.Kind, "", func(value []byte) ([]byte, bool, error) {
		return s.Reseal(r.Keyring, identity.KeyOwner(), value)
	})
}

// replaceRecord writes a record as reseal has it, unless there is none or reseal changes nothing.
func (r *Rekeyer) replaceRecord(ctx context.Context, t id.Tenant, kind storage.Kind, key string,
	reseal func([]byte) ([]byte, bool, error)) (changed bool, err error) {
	for range tries {
		record, err := r.Store.Get(ctx, t, kind, key)
		if errors.Is(err, storage.ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		value, changed, err := reseal(record.Value)
		if err != nil || !changed {
			return false, err
		}
		err = r.Store.Write(ctx, t, []storage.Change{{Kind: kind, Key: key, Value: value, If: record.Version}})
		if !errors.Is(err, storage.ErrStale) {
			return err == nil, err
		}
	}
	return false, fmt.Errorf("%s: changes too often", kind)
}
