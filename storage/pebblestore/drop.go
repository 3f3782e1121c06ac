package pebblestore

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Drop implements storage.Copier. A lookup of a name searches only the tables and the recent names, so the deletion
// must be in the tables before Drop returns.
func (e *Engine) Drop(ctx context.Context, t id.Tenant, mark storage.Record) error {
	if err := e.enterWrite(ctx); err != nil {
		return fmt.Errorf("drop: %w", err)
	}
	defer e.endCall()
	c, err := e.applyDrop(t, mark)
	if unsynced := c.waitDurable(); unsynced != nil {
		err = unsynced
	}
	if err == nil {
		err = readError(e.db.Flush())
	}
	if err != nil {
		return fmt.Errorf("drop: %w", err)
	}
	e.recent.forgetTenant(t)
	return nil
}

func (e *Engine) applyDrop(t id.Tenant, mark storage.Record) (*commit, error) {
	if err := storage.ValidateDrop(t, mark); err != nil {
		return nil, err
	}
	e.write.Lock()
	defer e.write.Unlock()
	condition := storage.Change{Kind: mark.Kind, Key: mark.Key, If: mark.Version}
	if _, err := e.stage(t, []storage.Change{condition}); err != nil {
		if errors.Is(err, storage.ErrStale) {
			err = storage.ErrStale
		}
		return e.write.last, err
	}
	records, err := e.storedKeys(t)
	if err != nil {
		return e.write.last, err
	}
	b := e.db.NewBatch()
	begin, end := headKey(t)[:8], headKey(t + 1)[:8]
	if err := b.DeleteRange(begin, end, nil); err != nil {
		return e.write.last, errors.Join(readError(err), b.Close())
	}
	delete(e.write.heads, t)
	return e.applyBatch(b, records)
}

// storedKeys returns the keys of all stored records of a tenant.
func (e *Engine) storedKeys(t id.Tenant) (keys []string, err error) {
	err = e.each(context.Background(), t, familyStored, func(key, _ []byte) (bool, error) {
		keys = append(keys, string(appendPrefix(nil, t, familyStored))+string(key))
		return true, nil
	})
	return keys, err
}

// forgetTenant removes the recent names of a tenant.
func (r *recentNames) forgetTenant(t id.Tenant) {
	prefix := string(headKey(t)[:8])
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.generations {
		for key := range g.names {
			if string(key[:8]) == prefix {
				delete(g.names, key)
			}
		}
	}
	r.drops.Add(1)
}
