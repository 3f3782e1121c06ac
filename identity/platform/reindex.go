package platform

import (
	"context"
	"net/http"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
)

// Reindex rebuilds the index of a log's events in the background. It returns fault.Conflict if that is already running.
type Reindex func(ctx context.Context, t id.Tenant) error

func (c *Calls) reindexOrganization(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	return writeNoContent(w, c.ReindexOrganization(r.Context(), organizationOfPath(r)))
}

// ReindexOrganization starts to rebuild the index of an organization's events. It does not wait for the new index.
func (c *Calls) ReindexOrganization(ctx context.Context, organization string) error {
	tenant, err := c.FindOrganization(ctx, organization)
	if err != nil {
		return err
	}
	return c.Reindex(ctx, tenant)
}
