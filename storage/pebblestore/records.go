package pebblestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Get implements storage.RecordStore. If an append that writes this record is being synced, Get waits for it.
func (e *Engine) Get(ctx context.Context, t id.Tenant, kind storage.Kind, key string) (storage.Record, error) {
	if err := e.beginCall(ctx); err != nil {
		return storage.Record{}, fmt.Errorf("get record: %w", err)
	}
	defer e.endCall()
	r := storage.Record{Kind: kind, Key: key}
	stored := appendStoredKey(nil, t, kind, key)
	err := e.readValue(stored, func(v []byte) error {
		version, value, err := parseStored(v)
		r.Version, r.Value = version, append([]byte{}, value...)
		return err
	})
	if unsettled := e.unsynced.settleRecord(ctx, stored); unsettled != nil {
		err = unsettled
	}
	if err != nil {
		return storage.Record{}, fmt.Errorf("get record: %w", err)
	}
	return r, nil
}

// Scan implements storage.RecordStore. Like Get, it waits for the sync of the records that it returns.
func (e *Engine) Scan(ctx context.Context, t id.Tenant, kind storage.Kind, begin, end string, limit int) ([]storage.Record, error) {
	if err := e.beginCall(ctx); err != nil {
		return nil, fmt.Errorf("scan records: %w", err)
	}
	defer e.endCall()
	lower, upper := storedBounds(t, kind, begin, end)
	if string(lower) >= string(upper) {
		return nil, nil
	}
	found, err := e.scanRecords(ctx, lower, upper, limit)
	if unsettled := e.unsynced.settleRange(ctx, lower, upper); unsettled != nil {
		err = unsettled
	}
	if err != nil {
		return nil, fmt.Errorf("scan records: %w", err)
	}
	return found, nil
}

// scanRecords reads at most limit records with keys in [lower, upper).
func (e *Engine) scanRecords(ctx context.Context, lower, upper []byte, limit int) (found []storage.Record, err error) {
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, readError(err)
	}
	defer func() { err = cmp.Or(err, readError(it.Close())) }()
	for more := it.First(); more && len(found) < limit; more = it.Next() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r, err := storedAt(it)
		if err != nil {
			return nil, err
		}
		found = append(found, r)
	}
	return found, readError(it.Error())
}

// storedAt decodes the record at the iterator's position.
func storedAt(it *pebble.Iterator) (storage.Record, error) {
	v, err := it.ValueAndErr()
	if err != nil {
		return storage.Record{}, readError(err)
	}
	version, value, err := parseStored(v)
	if err != nil {
		return storage.Record{}, err
	}
	kind, key, found := strings.Cut(string(it.Key()[prefixLen:]), "\x00")
	if !found {
		return storage.Record{}, corruptValue("stored record's key")
	}
	return storage.Record{Kind: storage.Kind(kind), Key: key, Value: append([]byte{}, value...), Version: version}, nil
}

// Write implements storage.RecordStore.
func (e *Engine) Write(ctx context.Context, t id.Tenant, changes []storage.Change) error {
	if err := e.enterWrite(ctx); err != nil {
		return fmt.Errorf("write records: %w", err)
	}
	defer e.endCall()
	c, err := e.applyChanges(t, changes)
	if unsynced := c.waitDurable(); unsynced != nil {
		err = unsynced
	}
	if err != nil {
		return fmt.Errorf("write records: %w", err)
	}
	return nil
}

// applyChanges checks and applies changes. It returns the commit on which the result depends, also if it returns an
// error.
func (e *Engine) applyChanges(t id.Tenant, changes []storage.Change) (*commit, error) {
	if err := storage.ValidateChanges(changes); err != nil {
		return nil, err
	}
	e.write.Lock()
	defer e.write.Unlock()
	staged, err := e.stage(t, changes)
	if err != nil || len(staged) == 0 {
		return e.write.last, err
	}
	b := e.db.NewBatch()
	if storage.Forgets(changes) {
		if err := e.file.raiseFormat(formatErased); err != nil {
			return e.write.last, err
		}
		e.write.writer.putErasures(b, t, nil, e.file.storeFormat())
		e.erasures.Add(b, erasuresKey())
	}
	putChanges(b, staged)
	keys := make([]string, len(staged))
	for i := range staged {
		keys[i] = staged[i].key
	}
	return e.applyBatch(b, keys)
}

// stagedChange is a change whose condition holds.
type stagedChange struct {
	key     string
	value   []byte // encoded; nil deletes
	version uint64 // 0 if deleted
}

// stage checks the changes in order and returns them as they will be written, or an *ItemError. The caller must hold
// the write lock.
func (e *Engine) stage(t id.Tenant, changes []storage.Change) ([]stagedChange, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	staged := make([]stagedChange, 0, len(changes))
	versions := make(map[string]uint64, len(changes)) // after the changes so far
	for i := range changes {
		c := &changes[i]
		s := stagedChange{key: string(appendStoredKey(nil, t, c.Kind, c.Key))}
		version, ok := versions[s.key]
		if !ok {
			var err error
			if version, err = e.storedVersion(s.key); err != nil {
				return nil, err
			}
		}
		if c.If != storage.AnyVersion && c.If != version {
			return nil, &storage.ItemError{Item: c.Item, Err: storage.ErrStale}
		}
		var err error
		if s.version, err = c.NextVersion(version); err != nil {
			return nil, err
		}
		if c.Value != nil {
			s.value = appendStored(nil, s.version, c.Value)
		}
		versions[s.key] = s.version
		staged = append(staged, s)
	}
	return staged, nil
}

// storedVersion returns the applied version of a record, or 0 if it is absent.
func (e *Engine) storedVersion(key string) (version uint64, err error) {
	err = e.readValue([]byte(key), func(v []byte) (err error) {
		version, _, err = parseStored(v)
		return err
	})
	if errors.Is(err, storage.ErrNotFound) {
		err = nil
	}
	return version, err
}

func putChanges(b *pebble.Batch, staged []stagedChange) {
	for _, s := range staged {
		if s.value == nil {
			_ = b.Delete([]byte(s.key), nil)
		} else {
			_ = b.Set([]byte(s.key), s.value, nil)
		}
	}
}
