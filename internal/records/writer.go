package records

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// changesAtOnce is the number of changes that make a Writer write.
const changesAtOnce = 512

// Writer collects changes of one partition and writes a few hundred at a time, to save commits. It must not be used
// concurrently. Changes may be unwritten until Flush returns.
type Writer struct {
	Store  storage.RecordStore
	Tenant id.Tenant

	changes []storage.Change
}

// Put adds changes, and writes all collected changes if there are enough.
func (w *Writer) Put(ctx context.Context, changes ...storage.Change) error {
	if w.changes = append(w.changes, changes...); len(w.changes) < changesAtOnce {
		return nil
	}
	return w.Flush(ctx)
}

// Flush writes the remaining changes.
func (w *Writer) Flush(ctx context.Context) error {
	if len(w.changes) == 0 {
		return nil
	}
	err := w.Store.Write(ctx, w.Tenant, w.changes)
	w.changes = w.changes[:0]
	return err
}
