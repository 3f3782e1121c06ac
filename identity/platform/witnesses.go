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

func (c *Calls) askWitnesses(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	asking, err := c.AskWitnesses(r.Context(), organizationOfPath(r))
	return write(w, http.StatusAccepted, asking, err)
}

// AskWitnesses asks the witnesses of an organization's log. It does not wait for their answers.
func (c *Calls) AskWitnesses(ctx context.Context, organization string) (wire.AskedWitnesses, error) {
	tenant, err := c.FindOrganization(ctx, organization)
	if err != nil {
		return wire.AskedWitnesses{}, err
	}
	names, err := c.Witnesses(ctx, tenant)
	return wire.AskedWitnesses{Asked: append([]string{}, names...)}, err
}
