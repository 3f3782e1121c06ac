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

// Import is a log.Import that checks the documents of each event before the sequencer takes
// it.
type Import struct {
	*log.Import
	in    *inspector
	store log.Store
	began id.Index // events that were here before
}

// BeginImport is log.Ledgers.BeginImport. store is that of l.
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

// Append checks the next events and hands them on, as log.Import.Append does. It refuses an erasure
// of events that were here before the import and have their envelopes (ErrErasedSince).
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

// checkErased looks for events that were here before and that a statement has erased elsewhere.
func (i *Import) checkErased(ctx context.Context, said *event.Erasure) error {
	for _, r := range said.Ranges {
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
