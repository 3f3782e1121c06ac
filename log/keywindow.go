package log

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// windowEvents is for how many events idempotency keys are read at a time: an
// engine may go through all keys of a ledger for that. It is 64 MiB.
const windowEvents = 1 << 22

// keyWindow brings idempotency keys to their events, which go up from call to call.
type keyWindow struct {
	store   storage.Copier
	tenant  id.Tenant
	size    id.Index // of the ledger
	begin   id.Index
	digests []storage.KeyDigest // of the events from begin on
}

func (w *keyWindow) attach(ctx context.Context, events []storage.Event) error {
	for i := range events {
		at := events[i].Index
		if at < w.begin || at >= w.begin+id.Index(len(w.digests)) {
			if err := w.move(ctx, at); err != nil {
				return err
			}
		}
		events[i].KeyDigest = w.digests[at-w.begin]
	}
	return nil
}

func (w *keyWindow) move(ctx context.Context, begin id.Index) error {
	end := min(begin+windowEvents, w.size)
	w.begin, w.digests = begin, make([]storage.KeyDigest, end-begin)
	for k, err := range w.store.IdempotencyKeys(ctx, w.tenant, begin, end) {
		if isDamage(err) {
			return fmt.Errorf("%w: idempotency keys: %w", ErrDamaged, err)
		}
		if err != nil {
			return err
		}
		if w.digests[k.Index-begin] != (storage.KeyDigest{}) {
			return fmt.Errorf("%w: event %d has two idempotency keys", ErrDamaged, k.Index)
		}
		w.digests[k.Index-begin] = k.Digest
	}
	return nil
}
