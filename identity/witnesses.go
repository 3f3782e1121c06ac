package identity

import (
	"context"
	"net/http"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
)

// Witnesses has the witnesses of an organization's log asked at once, for the operator
// of the service. It returns the names of those who are asked.
type Witnesses func(ctx context.Context, t id.Tenant) ([]string, error)

// askedWitnesses are those who are asked about a log.
type askedWitnesses struct {
	Asked []string `json:"asked"`
}

// askWitnesses does not wait for what the witnesses answer; there is no body to read.
func (s *Server) askWitnesses(w http.ResponseWriter, r *request) error {
	tenant, err := s.findOrganization(r)
	if err != nil {
		return err
	}
	names, err := s.Witnesses(r.Context(), tenant)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusAccepted, askedWitnesses{Asked: append([]string{}, names...)})
}
