package audit

import (
	"context"
	"fmt"
	"runtime"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Import is a log.Import that checks the documents of each event before the sequencer takes
// it.
type Import struct {
	*log.Import
	in *inspector
}

// BeginImport is log.Ledgers.BeginImport.
func BeginImport(ctx context.Context, l *log.Ledgers, t id.Tenant, identity storage.Record) (*Import, error) {
	i, err := l.BeginImport(ctx, t, identity)
	if err != nil {
		return nil, err
	}
	return &Import{Import: i, in: newInspector(runtime.GOMAXPROCS(0))}, nil
}

// Append checks the next events and hands them on, as log.Import.Append does.
func (i *Import) Append(events []storage.Event) (wait func(context.Context) error, err error) {
	for n, v := range i.in.inspectAll(i.Identity(), events) {
		if f := v.toFinding(i.Identity(), events[n].Index); f != nil {
			return nil, fmt.Errorf("import: %w: %v", log.ErrDamaged, *f)
		}
	}
	return i.Import.Append(events)
}
