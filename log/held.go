package log

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// IsHeld reports whether a ledger takes no events because the records of its organization contradict it.
func IsHeld(ctx context.Context, store Store, t id.Tenant) (bool, error) {
	f, err := (&Ledgers{store: store}).readFault(ctx, t)
	if err != nil {
		return false, fmt.Errorf("read fault record: %w", err)
	}
	return f.Level == Held, nil
}

// Release ends the hold of a ledger in a store that has no writer. Another fault stays. The next comparison holds the ledger again if
// the contradiction is still there.
func Release(ctx context.Context, store Store, t id.Tenant) error {
	held, err := IsHeld(ctx, store, t)
	if err != nil || !held {
		return err
	}
	return store.Write(ctx, t, []storage.Change{{Kind: kindFault, If: storage.AnyVersion}})
}
