package platform

import (
	"context"
	"net/http"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/wire"
)

// Witnesses asks the witnesses of an organization's log for signatures now, and returns their names.
type Witnesses func(ctx context.Context, t id.Tenant) ([]string, error)

// askWitnesses does not wait for the answers of the witnesses.
func (c *Calls) askWitnesses(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	tenant, err := c.FindOrganization(r)
	if err != nil {
		return err
	}
	names, err := c.Witnesses(r.Context(), tenant)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusAccepted, wire.AskedWitnesses{Asked: append([]string{}, names...)})
}
