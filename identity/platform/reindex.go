package platform

import (
	"context"
	"net/http"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
)

// Reindex rebuilds the index of a log's events in the background. It returns fault.Conflict if that is already running.
type Reindex func(ctx context.Context, t id.Tenant) error

// reindexOrganization does not wait for the new index.
func (c *Calls) reindexOrganization(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	tenant, err := c.FindOrganization(r)
	if err != nil {
		return err
	}
	if err := c.Reindex(r.Context(), tenant); err != nil {
		return err
	}
	edge.WriteNoContent(w)
	return nil
}
