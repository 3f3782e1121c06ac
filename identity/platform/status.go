package platform

import (
	"context"
	"net/http"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/operate/status"
)

// Status reports the health of the service (package status).
type Status interface {
	Report(ctx context.Context) (*status.Report, error)
	ReportOrganization(ctx context.Context, t id.Tenant) (*status.Organization, error)
}

// answerStatus answers 200 whatever the health of the service, because the report is the answer.
func (c *Calls) answerStatus(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	report, err := c.Status.Report(r.Context())
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, report)
}

// answerOrganizationStatus reports the health of one organization.
func (c *Calls) answerOrganizationStatus(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	tenant, err := c.FindOrganization(r.Context(), organizationOfPath(r))
	if err != nil {
		return err
	}
	report, err := c.Status.ReportOrganization(r.Context(), tenant)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, report)
}
