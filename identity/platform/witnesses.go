package platform

import (
	"context"
	"net/http"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
)

// Witnesses asks the witnesses of an organization's log at once, for the operator of the
// service. It returns the names of the witnesses.
type Witnesses func(ctx context.Context, t id.Tenant) ([]string, error)

// askedWitnesses are the names of the witnesses that are asked about a log.
type askedWitnesses struct {
	Asked []string `json:"asked"`
}

// askWitnesses does not wait for the answers of the witnesses. The request has no body.
func (c *Calls) askWitnesses(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	tenant, err := c.FindOrganization(r)
	if err != nil {
		return err
	}
	names, err := c.Witnesses(r.Context(), tenant)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusAccepted, askedWitnesses{Asked: append([]string{}, names...)})
}
