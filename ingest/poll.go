package ingest

import (
	"net/http"
	"time"

	"github.com/agentledger/agentledger/internal/http/edge"
)

// pollRetry is the Retry-After of a poll that was refused because too many wait.
const pollRetry = 5 * time.Second

// answerApproval serves GET /v1/ingest/approvals/:id.
func (s *Server) answerApproval(w http.ResponseWriter, r *http.Request, c caller, _ []byte) error {
	wait, err := edge.ParseWait(r)
	if err != nil {
		return err
	}
	edge.ExtendDeadlines(w, wait)
	found, err := s.approvals.Get(r.Context(), c.Tenant, c.KeyID, approvalOfPath(r), wait)
	if err != nil {
		return err
	}
	return s.writeDocument(w, http.StatusOK, newApprovalView(found))
}
