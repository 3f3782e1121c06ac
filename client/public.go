package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// LogKey is a key of an organization's log for trees of the sizes [FromSize, ToSize).
type LogKey struct {
	VerifierKey string    `json:"vkey"` // C2SP vkey
	Use         string    `json:"use"`  // log, grant or export
	FromSize    id.Index  `json:"from_size"`
	ToSize      *id.Index `json:"to_size"` // nil for the current key
}

// Keys fetches the keys of a log, latest last. They are unverified: pin a key from a source that
// the operator does not control. Errors are those of Call.
func (c *Client) Keys(ctx context.Context, slug id.Slug) ([]LogKey, error) {
	var answer struct {
		Keys []LogKey `json:"keys"`
	}
	if err := c.fetchPublicJSON(ctx, publicPath(slug, "transparency/keys"), &answer); err != nil {
		return nil, fmt.Errorf("fetch keys: %w", err)
	}
	return answer.Keys, nil
}

// FetchBundle fetches the verification bundle of one event, unchecked. Check it with
// verify.ParseBundle and verify.Check. Errors are those of Call; for an unknown event the error is
// an *Error with status 404.
func (c *Client) FetchBundle(ctx context.Context, slug id.Slug, e id.Event) ([]byte, error) {
	body, err := c.sendWithRetries(ctx,
		call{method: http.MethodGet, path: publicPath(slug, "verify/"+url.PathEscape(string(e)))})
	if err != nil {
		return nil, fmt.Errorf("fetch bundle: %w", err)
	}
	return body, nil
}

// FetchCheckpoint fetches the latest checkpoint of an organization's log by the organization's ID.
// It follows the successors of a log that has ended. The checkpoint is well-formed, but signatures
// and successors are unchecked; Log.Checkpoint checks the signature. Errors are those of Call and
// tlog.ErrMalformed.
func (c *Client) FetchCheckpoint(ctx context.Context, o id.Organization) (tlog.Checkpoint, error) {
	checkpoint, err := c.newestCheckpoint(ctx, o)
	if err != nil {
		return tlog.Checkpoint{}, fmt.Errorf("fetch checkpoint: %w", err)
	}
	return checkpoint, nil
}

func (c *Client) newestCheckpoint(ctx context.Context, o id.Organization) (tlog.Checkpoint, error) {
	origin := id.Origin("/o/" + o.String())
	for {
		log, err := c.Tiles(origin)
		if err != nil {
			return tlog.Checkpoint{}, err
		}
		next, err := log.Successor(ctx)
		var answer *Error
		switch {
		case errors.As(err, &answer) && answer.Status == http.StatusNotFound:
			note, err := log.Checkpoint(ctx)
			if err != nil {
				return tlog.Checkpoint{}, err
			}
			return tlog.ReadCheckpoint(note)
		case err != nil:
			return tlog.Checkpoint{}, err
		}
		origin = origin.Next()
		if of, err := next.Origin.Organization(); err != nil || of != o || next.Origin.Below(o) != origin.Below(o) {
			return tlog.Checkpoint{}, malformedAnswer(fmt.Errorf("not a successor of the log: %s",
				next.Origin))
		}
	}
}

// Fetch fetches a public document unchanged. path must be escaped and begin with a slash; it may
// have a query. The request accepts JSON. Errors are those of Call.
func (c *Client) Fetch(ctx context.Context, path string) ([]byte, error) {
	body, err := c.sendWithRetries(ctx, call{method: http.MethodGet, path: path})
	if err != nil {
		return nil, fmt.Errorf("fetch: %w", err)
	}
	return body, nil
}

func publicPath(slug id.Slug, rest string) string {
	return "/v1/public/orgs/" + url.PathEscape(string(slug)) + "/" + rest
}
