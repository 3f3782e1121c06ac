package audit

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// keysAtOnce is the number of events whose idempotency keys are read at once, about 64 MiB. An engine may have to scan
// all keys of a ledger for each read.
const keysAtOnce = 1 << 22

// keyReader finds the idempotency keys of events, whose indices must increase from call to call.
type keyReader struct {
	store   storage.Copier
	tenant  id.Tenant
	size    id.Index // of the ledger
	begin   id.Index
	digests []storage.KeyDigest // of the events from begin
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
