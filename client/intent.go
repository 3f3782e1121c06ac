package client

import "context"

// SendIntent is Send for an event before an act: the answer decides on the act. The service asks for
// the approval that the event needs (Result.Approval), so the ingest key needs the scope approvals. A
// replayed event has its decision and its approval too: after a lost answer send the same bytes again.
//
// Errors are those of Send. An *Error with the code not_asked says that the event is stored without the
// approval that it needs: with status 409 it can get none, with 503, and with 429 and rate_limited, later.
func (c *Client) SendIntent(ctx context.Context, envelope []byte) (Result, error) {
	return c.sendEvent(ctx, envelope, true)
}
