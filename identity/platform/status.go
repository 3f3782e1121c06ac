package platform

import (
	"context"
	"net/http"

	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/operate/status"
)

// Status says whether the service is well (package status).
type Status interface {
	Report(ctx context.Context) (*status.Report, error)
}

// answerStatus answers 200 in every state, because the report is the answer. The request has no body.
func (c *Calls) answerStatus(w http.ResponseWriter, r *http.Request, _ edge.Body) error {
	report, err := c.Status.Report(r.Context())
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, report)
}
