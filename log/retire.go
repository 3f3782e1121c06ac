package log

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log/takeover"
	"github.com/agentledger/agentledger/storage"
)

// Retire marks a ledger as moved for good: it takes no more events here. It fails when head is not the stored head.
// A server that has the ledger in memory is fenced by the epoch: its next append meets a conflict, then the mark.
func Retire(ctx context.Context, store Store, t id.Tenant, head storage.Head) error {
	l := &Ledgers{store: store, clock: time.Now}
	known, err := l.readFault(ctx, t)
	if err != nil || known.Level == Moved {
		return err
	}
	value, err := json.Marshal(Fault{
		Level: Moved, At: id.InstantOf(l.clock()), Reason: fmt.Sprintf("moved to another store at size %d", head.Size),
	})
	if err != nil {
		return fmt.Errorf("retire: %w", err)
	}
	batch := storage.Batch{Tenant: t, Expect: head, Head: takeover.Raise(head), Changes: []storage.Change{{Kind: kindFault, Value: value}}}
	err = store.Append([]storage.Batch{batch}).Wait()[0]
	if errors.Is(err, storage.ErrConflict) || errors.Is(err, storage.ErrStale) {
		err = fmt.Errorf("the ledger was written meanwhile: stop the server: %w", err)
	}
	if err != nil {
		return fmt.Errorf("retire: %w", err)
	}
	return nil
}

// Local reports whether records of a kind are about a store's copy of a ledger: they are not copied.
func Local(kind storage.Kind) bool {
	return kind == kindFault || kind == KindReverified || kind.Derived()
}
