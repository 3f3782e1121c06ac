// Package evidence makes evidence packs of an organization's log, while they are sent. docs/evidence.md has the
// format, and package verify/pack checks it.
//
// Invariants:
//
//   - The same request under the same head and cosignatures gives the same bytes.
//   - A pack holds documents of the organization's own events that fit the request, and no others. Of the rest of
//     the range it has the hashes of records.
//   - The store is read in pages of a bounded size, and no page is open while the reader of the pack is waited for.
//     Memory is bounded by the bounds of package pack, and not by the size of the range.
//   - All that can refuse a request is found before the first byte. An envelope that is erased while the pack is sent
//     ends it.
//   - The ZIP file can't be read without its last file and its directory. Before these are sent, the export is an
//     event of the log. A log that takes no events is exported without one.
package evidence

import (
	"context"
	"io"
	"log/slog"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/tlog"
)

// Witnesses gives checkpoints with their cosignatures (package witness).
type Witnesses interface {
	Covering(ctx context.Context, s *log.State, index id.Index) (tlog.Checkpoint, []byte, error)
	Checkpoint(ctx context.Context, s *log.State) ([]byte, error)
}

// Transparency gives the tlog-policy of a log (package publicapi).
type Transparency interface {
	PolicyText(ctx context.Context, s *log.State) (string, error)
}

// Agents knows agents and their keys (package agent).
type Agents interface {
	Agent(ctx context.Context, t id.Tenant, a id.Agent) (agent.Agent, error)
	ListKeys(ctx context.Context, t id.Tenant, a id.Agent, after id.Key, limit int) ([]agent.Key, error)
}

// Policies knows the versions of policies (package policystore).
type Policies interface {
	Get(ctx context.Context, t id.Tenant, policyID string, version uint64) (policystore.Version, error)
}

// Approvals knows approvals (package approval).
type Approvals interface {
	Find(ctx context.Context, t id.Tenant, name approval.ID) (approval.Approval, error)
}

// Organizations tells the name of an organization (package org).
type Organizations interface {
	CurrentSettings(ctx context.Context, t id.Tenant) (*org.Settings, error)
}

// Events appends the service's own events (package sysevent).
type Events interface {
	Append(ctx context.Context, t id.Tenant, principal string,
		prepare func(context.Context, *log.State) (sysevent.Change, error)) ([]log.Receipt, error)
}

// Output takes a pack. Its work is paced, so that it leaves neighbours their part of the processors.
type Output interface {
	io.Writer
	// TakeTurn waits for a processor. give is called after about 20 ms of work, and before Write.
	TakeTurn(ctx context.Context) (give func(), err error)
}

// Exporter makes packs. All members are required. Its methods may be called concurrently.
type Exporter struct {
	Ledgers       *log.Ledgers
	Witnesses     Witnesses
	Transparency  Transparency
	Agents        Agents
	Policies      Policies
	Approvals     Approvals
	Organizations Organizations
	Events        Events
	Index         *index.Index
	Logger        *slog.Logger
}

// Asked is a request for a pack.
type Asked struct {
	Tenant    id.Tenant
	Principal string // that asks
	Wanted    Wanted
}

// Export writes a pack. An error before the first byte is fault.Invalid for a range that exceeds the bounds of a
// pack, or an error of the ledger; fault.Unavailable when settings change all the time, or the ledger is not proved
// by its checkpoint.
func (x *Exporter) Export(ctx context.Context, a Asked, to Output) error {
	p, err := x.plan(ctx, a, to)
	if err != nil {
		return err
	}
	w := &packWriter{exporter: x, plan: p, out: &pacedWriter{to: to}}
	return w.writePack(ctx)
}
