package ingest

import (
	"net/http"
	"strconv"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/flow/approval"
)

// pollRetry is when to come again with a poll for which there was no room to wait.
const pollRetry = 5 * time.Second

// longestWait returns for how long a request may wait, 0 when it does not say so in the
// right form; getApproval refuses that.
func longestWait(r *http.Request) time.Duration {
	wait, _ := parseWait(r)
	return wait
}

// answerApproval serves GET /v1/ingest/approvals/:id.
func (s *Server) answerApproval(w http.ResponseWriter, r *http.Request, c caller, _ []byte) error {
	if err := checkVersion(w, r); err != nil {
		return err
	}
	wait, err := parseWait(r)
	if err != nil {
		return err
	}
	extendDeadlines(w, wait)
	found, err := s.approvals.Get(r.Context(), c.Tenant, c.KeyID, approvalOfPath(r), wait)
	if err != nil {
		return err
	}
	answer{http.StatusOK, appendApproval(nil, found)}.writeJSON(w)
	return nil
}

// answerTime is how long the answer of a long poll may take when the wait is over.
const answerTime = 15 * time.Second

// extendDeadlines moves the time-outs of the server, which are for those that work, for a
// request that waits. A writer without deadlines has none to move.
func extendDeadlines(w http.ResponseWriter, wait time.Duration) {
	if wait == 0 {
		return
	}
	c := http.NewResponseController(w)
	end := time.Now().Add(wait + answerTime)
	_ = c.SetReadDeadline(end)
	_ = c.SetWriteDeadline(end)
}

// parseWait reads ?wait=, whole seconds.
func parseWait(r *http.Request) (time.Duration, error) {
	query := r.URL.Query()
	if !query.Has("wait") {
		return 0, nil
	}
	n, err := strconv.ParseUint(query.Get("wait"), 10, 8)
	if wait := time.Duration(n) * time.Second; err == nil && wait <= approval.MaxWait {
		return wait, nil
	}
	return 0, fault.New(fault.Invalid, "wait must be a whole number of seconds from 0 to 30")
}
