// Package evidence answers the calls of people for evidence packs.
//
// Invariants:
//
//   - A pack is of the organization of the caller's session, and of no other.
//   - Roles that may read payloads get packs, and no others.
//   - An organization has one export in flight, a network two, and the service four, because a pack reads its range several
//     times. A reader that takes less than 64 KiB a second is cut off.
package evidence

import (
	"context"
	"time"

	"github.com/agentledger/agentledger/console/call"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/read/evidence"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// Bounds of exports that are in flight, in all and of one organization.
const (
	maxExports             = 4
	maxExportsOrganization = 1
)

// Exporter makes packs (package evidence below internal/read).
type Exporter interface {
	Export(ctx context.Context, a evidence.Asked, to evidence.Output) error
}

// Calls are the calls for packs.
type Calls struct {
	exporter Exporter
	exports  *admission.Downloads
}

// New returns the calls.
func New(x Exporter) *Calls {
	return &Calls{exporter: x, exports: admission.NewDownloads(maxExports, maxExportsOrganization)}
}

// AddRoutes adds the routes of the calls.
func (c *Calls) AddRoutes(table *call.Table) {
	table.Add("GET", "/v1/console/evidence.zip", call.Permit(account.ReadPayloads), edge.Body{}, c.download).
		Takes("from", "to", "agent_id", "tool", "trace_id", "envelopes")
}

func (c *Calls) download(r *call.Request) (call.Answer, error) {
	wanted, err := evidence.ParseWanted(r.URL.Query())
	if err != nil {
		return call.Answer{}, err
	}
	asked := evidence.Asked{Tenant: r.Who.Tenant, Principal: string(r.Who.Account), Wanted: wanted}
	return call.Answer{Stream: &call.Stream{Media: "application/zip", FileName: "evidence.zip",
		Write: func(ctx context.Context, w *call.StreamWriter) error {
			release, err := c.exports.Acquire(asked.Tenant, w.From())
			if err != nil {
				return errBusy(err)
			}
			defer func() { release(w.TooSlow()) }()
			return c.exporter.Export(ctx, asked, w)
		}}}, nil
}

func errBusy(cause error) error {
	return &fault.Error{Kind: fault.RateLimited, Code: "rate_limited", Err: cause,
		RetryAfter: max(10*time.Second, fault.Of(cause).RetryAfter),
		Message:    "Too many evidence packs are being made; ask again later"}
}
