package audit

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// keysAtOnce is for how many events idempotency keys are read at a time: an
// engine may go through all keys of a ledger for that. It is 64 MiB.
const keysAtOnce = 1 << 22

// keyReader brings idempotency keys to their events, which go up from call to call.
type keyReader struct {
	store   storage.Copier
	tenant  id.Tenant
	size    id.Index // of the ledger
	begin   id.Index
	digests []storage.KeyDigest // of the events from begin on
}

func (w *keyReader) attachKeys(ctx context.Context, events []storage.Event) error {
	for i := range events {
		at := events[i].Index
		if at < w.begin || at >= w.begin+id.Index(len(w.digests)) {
			if err := w.readKeyDigests(ctx, at); err != nil {
				return err
			}
		}
		events[i].KeyDigest = w.digests[at-w.begin]
	}
	return nil
}

func (w *keyReader) readKeyDigests(ctx context.Context, begin id.Index) error {
	end := min(begin+keysAtOnce, w.size)
	w.begin, w.digests = begin, make([]storage.KeyDigest, end-begin)
	for k, err := range w.store.IdempotencyKeys(ctx, w.tenant, begin, end) {
		if log.IsDamage(err) {
			return fmt.Errorf("%w: idempotency keys: %w", log.ErrDamaged, err)
		}
		if err != nil {
			return err
		}
		if w.digests[k.Index-begin] != (storage.KeyDigest{}) {
			return fmt.Errorf("%w: event %d has two idempotency keys", log.ErrDamaged, k.Index)
		}
		w.digests[k.Index-begin] = k.Digest
	}
	return nil
}
