// Package evidence exports evidence packs of an organization's log, and creates them while they are sent.
// docs/spec/evidence-pack.md specifies the format, and package verify/pack checks it.
//
// Invariants:
//
//   - The same request under the same head and cosignatures produces the same bytes.
//   - A pack contains documents of the organization's own events that match the request, and no others. For the rest of
//     the range it contains the hashes of records.
//   - The store is read in pages of a bounded size, and no page is open while the pack is being sent. Memory is bounded
//     by the bounds of package pack, and not by the size of the range.
//   - Everything that can reject a request is checked before the first byte. If an envelope is erased while the pack is
//     being sent, the pack ends early.
//   - The ZIP file is not readable without its last file and its directory. Before these are sent, the export is
//     recorded as an event of the log. A log that accepts no events is exported without such an event.
package evidence

import (
	"context"
	"io"
	"log/slog"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/tlog"
)

// Witnesses provides checkpoints with their cosignatures. witness.Witnesses implements it.
type Witnesses interface {
	Covering(ctx context.Context, s *log.State, index id.Index) (tlog.Checkpoint, []byte, error)
	Checkpoint(ctx context.Context, s *log.State) ([]byte, error)
}

// Transparency provides the tlog-policy of a log. publicapi.Server implements it.
type Transparency interface {
	PolicyText(ctx context.Context, s *log.State) (string, error)
}

// Agents provides agents and their keys. agent.Agents implements it.
type Agents interface {
	Agent(ctx context.Context, t id.Tenant, a id.Agent) (agent.Agent, error)
	ListKeys(ctx context.Context, t id.Tenant, a id.Agent, after id.Key, limit int) ([]agent.Key, error)
}

// Policies provides the versions of policies. policystore.Policies implements it.
type Policies interface {
	Get(ctx context.Context, t id.Tenant, policyID string, version uint64) (policystore.Version, error)
}

// Approvals provides approvals. approval.Approvals implements it.
type Approvals interface {
	Find(ctx context.Context, t id.Tenant, name approval.ID) (approval.Approval, error)
}

// Organizations provides the name of an organization. org.Orgs implements it.
type Organizations interface {
	CurrentSettings(ctx context.Context, t id.Tenant) (*org.Settings, error)
}

// People provides accounts. account.Accounts implements it.
type People interface {
	ByID(ctx context.Context, who account.ID) (account.Account, error)
}

// Events appends the service's own events. sysevent.Appender implements it.
type Events interface {
	Append(ctx context.Context, t id.Tenant, principal string,
		prepare func(context.Context, *log.State) (sysevent.Change, error)) ([]log.Receipt, error)
}

// Output receives a pack. Its work is paced, so that it leaves processor time to others.
type Output interface {
	io.Writer
	// TakeTurn waits for a processor. The caller must call give after about 20 ms of work, and before Write.
	TakeTurn(ctx context.Context) (give func(), err error)
}

// Exporter creates packs. All members are required. Its methods may be called concurrently.
type Exporter struct {
	Ledgers       *log.Ledgers
	Witnesses     Witnesses
	Transparency  Transparency
	Agents        Agents
	Policies      Policies
	Approvals     Approvals
	Organizations Organizations
	People        People
	Events        Events
	Index         *index.Index
	Logger        *slog.Logger
}

// Asked is a request for a pack.
type Asked struct {
	Tenant    id.Tenant
	Principal string // of the caller
	Wanted    Wanted
}

// Export writes a pack. Before the first byte, it returns fault.Invalid for a range that exceeds the bounds of a pack,
// an error of the ledger, or fault.Unavailable if settings keep changing or the ledger is not proved by its checkpoint.
func (x *Exporter) Export(ctx context.Context, a Asked, to Output) error {
	p, err := x.plan(ctx, a, to)
	if err != nil {
		return err
	}
	w := &packWriter{exporter: x, plan: p, out: &pacedWriter{to: to}}
	return w.writePack(ctx)
}
