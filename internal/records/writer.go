package records

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// changesAtOnce is how many changes a Writer writes in one step.
const changesAtOnce = 512

// Writer writes many changes of one partition, a few hundred in one step. It is used by
// one goroutine. Changes that were put are written after Flush at the latest.
type Writer struct {
	Store  storage.RecordStore
	Tenant id.Tenant

	changes []storage.Change
}

// Put takes changes, and writes all it has when there are enough.
func (w *Writer) Put(ctx context.Context, changes ...storage.Change) error {
	if w.changes = append(w.changes, changes...); len(w.changes) < changesAtOnce {
		return nil
	}
	return w.Flush(ctx)
}

// Flush writes the changes that wait.
func (w *Writer) Flush(ctx context.Context) error {
	if len(w.changes) == 0 {
		return nil
	}
	err := w.Store.Write(ctx, w.Tenant, w.changes)
	w.changes = w.changes[:0]
	return err
}
