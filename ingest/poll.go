package ingest

import (
	"net/http"
	"time"

	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/http/edge"
)

// pollRetry is the Retry-After of a poll that was refused because too many wait.
const pollRetry = 5 * time.Second

// answerApproval serves GET /v1/ingest/approvals/:id.
func (s *Server) answerApproval(w http.ResponseWriter, r *http.Request, c caller, _ []byte) error {
	found, err := s.awaitApproval(w, r, c)
	if err != nil {
		return err
	}
	return s.writeDocument(w, http.StatusOK, newApprovalView(found))
}

// awaitApproval returns the approval in the path, after waiting for a decision as long as the request allows.
func (s *Server) awaitApproval(w http.ResponseWriter, r *http.Request, c caller) (found approval.Approval, err error) {
	wait, err := edge.ParseWait(r)
	if err != nil {
		return found, err
	}
	edge.ExtendDeadlines(w, wait)
	return s.approvals.Get(r.Context(), c.Tenant, c.KeyID, approvalOfPath(r), wait)
}
