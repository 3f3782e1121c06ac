package audit

import (
	"context"
	"fmt"
	"runtime"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Import is a log.Import that verifies the documents of each event before it is queued.
type Import struct {
	*log.Import
	in    *inspector
	store log.Store
	began id.Index // number of events before the import
}

// BeginImport is like log.Ledgers.BeginImport. store must be the store of l.
func BeginImport(
	ctx context.Context, l *log.Ledgers, store log.Store, t id.Tenant, identity storage.Record,
) (*Import, error) {
	i, err := l.BeginImport(ctx, t, identity)
	if err != nil {
		return nil, err
	}
	in := newInspector(runtime.GOMAXPROCS(0))
	return &Import{Import: i, in: in, store: store, began: i.Head().Size}, nil
}

// Append verifies the next events and queues them like log.Import.Append. It rejects an erasure of events that were
// stored before the import and still have their envelopes (ErrErasedSince).
func (i *Import) Append(ctx context.Context, events []storage.Event) (wait func(context.Context) error, err error) {
	for n, v := range i.in.inspectAll(i.Identity(), events) {
		if f := v.toFinding(i.Identity(), events[n].Index); f != nil {
			return nil, fmt.Errorf("import: %w: %v", log.ErrDamaged, *f)
		}
		if v.erasure != nil {
			if err := i.checkErased(ctx, v.erasure); err != nil {
				return nil, fmt.Errorf("import: event %d: %w", events[n].Index, err)
			}
		}
	}
	return i.Import.Append(events)
}

// checkErased looks for events that were stored before the import and are erased by a statement in the source store.
func (i *Import) checkErased(ctx context.Context, erasure *event.Erasure) error {
	for _, r := range erasure.Ranges {
		for e, err := range i.store.Events(ctx, i.Identity().Tenant, r.Begin, min(r.End, i.began),
			storage.FieldRecord|storage.FieldEnvelope) {
			if err != nil {
				return err
			}
			if e.Envelope != nil && !event.ReservedAgent(string(e.Agent)) {
				return ErrErasedSince
			}
		}
	}
	return nil
}
