// Package rekey re-encrypts the private keys of a store from older master keys to the current one while the service
// runs. Callers need not know which records contain keys.
//
// Invariants:
//
//   - A record is replaced only if it has not changed since it was read, and then contains the same keys, encrypted
//     again. A concurrent change wins, and the record is examined again.
//   - Nothing else in a record changes, and no key is ever written unencrypted.
//   - The set of master keys that may still be needed is recorded before the first key is re-encrypted, and until no
//     key is left to re-encrypt (BeginRekeying, CheckMasterKeys). So a store with some keys under an older master key
//     never starts without that master key.
//   - A key that cannot be decrypted stays as it is and is reported.
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

// Store is the part of a storage engine that rekeying needs.
type Store interface {
	storage.RecordStore
	Tenants(ctx context.Context) iter.Seq2[id.Tenant, error]
}

// Rekeyer re-encrypts all keys of a store.
type Rekeyer struct {
	Store   Store
	Ledgers *log.Ledgers
	Keyring *seal.Keyring // its active key is the current master key
	Sealed  []seal.Record // every kind of record that contains keys
	Texts   []seal.Texts  // every kind of record that contains other sealed texts
}

// tries bounds how often a record is read again because others change it at the same time.
const tries = 16

// Run examines all organizations once and returns the number of records it has written. Its error joins the failures
// of single records. If it returns no error, no record of the store needs an older master key, and the note of
// BeginRekeying is removed.
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

// rekeyTexts re-encrypts the sealed texts of a partition.
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

// rekeyRecord re-encrypts the keys of one record.
func (r *Rekeyer) rekeyRecord(ctx context.Context, identity *log.Identity, s seal.Record) (changed bool, err error) {
	return r.replaceRecord(ctx, identity.Tenant, s.Kind, "", func(value []byte) ([]byte, bool, error) {
		return s.Reseal(r.Keyring, identity.KeyOwner(), value)
	})
}

// replaceRecord replaces the value of a record by the result of reseal, unless there is no record or reseal changes
// nothing.
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
	return false, fmt.Errorf("%s: too many concurrent changes", kind)
}
