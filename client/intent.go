package client

import (
	"context"
	"errors"
	"net/http"
)

// SendIntent is Send for an event before an act: the answer decides on the act. The service asks for
// the approval that the event needs (Result.Approval), so the ingest key needs the scope approvals. A
// replayed event has its decision and its approval too: after a lost answer send the same bytes again.
//
// Errors are those of Send. An *Error with the code not_asked says that the event is stored without the
// approval that it needs: with status 409 it can get none, with 503, and with 429 and rate_limited, later.
func (c *Client) SendIntent(ctx context.Context, envelope []byte) (Result, error) {
	return c.sendEvent(ctx, envelope, headerRequestApproval)
}

// FindEvent asks whether a signed envelope is stored, and what the ledger has decided on it. It stores nothing and
// asks for no approval. A stored event is Replayed, and has its Decision when it names a tool and is not in the log
// that the organization's one succeeds. A service that does not know the question stores the envelope as by Send:
// then the result is Created when it was not stored before. Errors are those of Send.
func (c *Client) FindEvent(ctx context.Context, envelope []byte) (r Result, stored bool, err error) {
	r, err = c.sendEvent(ctx, envelope, headerReplayOnly)
	answer, ok := errors.AsType[*Error](err)
	if ok && answer.Status == http.StatusNotFound && answer.Code == "not_stored" {
		return Result{}, false, nil
	}
	return r, err == nil, err
}
