package log

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Unfinished is a ledger whose import has not ended.
type Unfinished struct {
	Identity *Identity
	mark     storage.Record
}

// UnfinishedImport looks for an unfinished import of a ledger in a store that has no
// writer; nil when there is none. Other damage of the ledger does not matter.
func UnfinishedImport(ctx context.Context, store Store, t id.Tenant) (*Unfinished, error) {
	mark, err := store.Get(ctx, t, kindFault, "")
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	var f Fault
	if err == nil {
		if err := json.Unmarshal(mark.Value, &f); err != nil || f.Level != Importing {
			return nil, nil // a mark that can't be read is not one of an import
		}
	}
	var identity identityRecord
	if err == nil {
		err = (&Ledgers{store: store}).readOwnRecord(ctx, t, kindIdentity, &identity)
	}
	if err != nil {
		return nil, fmt.Errorf("unfinished import: %w", err)
	}
	return &Unfinished{Identity: identity.toIdentity(t), mark: mark}, nil
}

// Drop removes the events that have arrived. An import that ends meanwhile wins: then storage.ErrStale is wrapped.
func (u *Unfinished) Drop(ctx context.Context, store storage.Copier) error {
	if err := store.Drop(ctx, u.Identity.Tenant, u.mark); err != nil {
		return fmt.Errorf("drop import: %w", err)
	}
	return nil
}
