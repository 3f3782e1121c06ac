package client

import (
	"context"
	"errors"
	"net/http"
)

// SendIntent is Send for an event before an action: the answer decides on the action. The service
// requests the approval that the event needs (Result.Approval), so the ingest key needs the scope
// approvals. A replayed event also has its decision and its approval: after a lost answer send the
// same bytes again.
//
// Errors are those of Send. An *Error with the code not_asked means that the event is stored
// without the approval that it needs: with status 409 it can get none; with status 503, or with 429
// and rate_limited, it can get one later.
func (c *Client) SendIntent(ctx context.Context, envelope []byte) (Result, error) {
	return c.sendAsking(ctx, envelope, headerRequestApproval)
}

// FindEvent asks whether a signed envelope is stored, and what the ledger has decided on it. It
// stores nothing and requests no approval. A stored event is Replayed, and has its Decision if it
// names a tool and is not in a log that the organization's current log succeeds. A service that
// does not support the question stores the envelope as Send does; the result is then Created if it
// was not stored before. Errors are those of Send.
func (c *Client) FindEvent(ctx context.Context, envelope []byte) (r Result, stored bool, err error) {
	r, err = c.sendAsking(ctx, envelope, headerReplayOnly)
	answer, ok := errors.AsType[*Error](err)
	if ok && answer.Status == http.StatusNotFound && answer.Code == "not_stored" {
		return Result{}, false, nil
	}
	return r, err == nil, err
}
