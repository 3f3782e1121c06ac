package console

import (
	"context"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/read/evidence"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// Maximum numbers of exports in flight, in all and per organization.
const (
	maxExports             = 4
	maxExportsOrganization = 1
)

// evidenceCalls are the calls that export evidence packs.
type evidenceCalls struct {
	exporter *evidence.Exporter
	exports  *admission.Downloads
}

// newEvidenceCalls returns the calls.
func newEvidenceCalls(x *evidence.Exporter) *evidenceCalls {
	return &evidenceCalls{exporter: x, exports: admission.NewDownloads(maxExports, maxExportsOrganization)}
}

// AddRoutes adds the routes of the calls.
func (c *evidenceCalls) AddRoutes(table *routes) {
	table.Add("GET", "/v1/console/evidence.zip", permit(account.ReadPayloads), edge.Body{}, c.download).
		Takes("from", "to", "agent_id", "tool", "trace_id", "on_behalf_of", "issuer", "envelopes", "coverage", "columns")
}

func (c *evidenceCalls) download(r *request) (answer, error) {
	wanted, err := evidence.ParseWanted(r.URL.Query())
	if err != nil {
		return answer{}, err
	}
	query := evidence.Asked{Tenant: r.Who.Tenant, Principal: string(r.Who.Account), Wanted: wanted}
	return answer{Stream: &stream{Media: "application/zip", FileName: "evidence.zip",
		Write: func(ctx context.Context, w *streamWriter) error {
			release, err := c.exports.Acquire(query.Tenant, w.From())
			if err != nil {
				return errBusy(err)
			}
			defer func() { release(w.TooSlow()) }()
			return c.exporter.Export(ctx, query, w)
		}}}, nil
}

func errBusy(cause error) error {
	return &fault.Error{Kind: fault.RateLimited, Code: "rate_limited", Err: cause,
		RetryAfter: max(10*time.Second, fault.Of(cause).RetryAfter),
		Message:    "Too many evidence packs are being made; ask again later"}
}
