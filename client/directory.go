package client

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/id"
)

// Directory is the log that lists all logs of a service. The key is unverified: pin a key from a
// source that the operator does not control.
type Directory struct {
	Organization id.Organization `json:"organization_id"`
	Slug         id.Slug         `json:"organization_slug"`
	Origin       id.Origin       `json:"origin"`
	LogKey       string          `json:"log_key"` // vkey
}

// Directory fetches the service's directory. If the service has none, the error is an *Error with
// status 404.
func (c *Client) Directory(ctx context.Context) (Directory, error) {
	var d Directory
	if err := c.fetchPublicJSON(ctx, "/v1/public/directory", &d); err != nil {
		return Directory{}, fmt.Errorf("fetch directory: %w", err)
	}
	return d, nil
}

// DirectoryPage is the content of the directory's entries [From, Next).
type DirectoryPage struct {
	From     id.Index         `json:"from"`
	Next     id.Index         `json:"next"` // TreeSize on the last page
	TreeSize id.Index         `json:"tree_size"`
	Events   []DirectoryEvent `json:"events"` // ascending by LogIndex
}

// DirectoryEvent is an event of the directory as the service sends it, unchecked.
type DirectoryEvent struct {
	LogIndex id.Index `json:"log_index"`
	Record   string   `json:"record"`
	Envelope string   `json:"envelope"`
}

// DirectoryPage fetches the directory's events from a log index on. Errors are those of Call.
func (c *Client) DirectoryPage(ctx context.Context, from id.Index) (DirectoryPage, error) {
	var p DirectoryPage
	if err := c.fetchPublicJSON(ctx, fmt.Sprintf("/v1/public/directory/events?from=%d", from), &p); err != nil {
		return DirectoryPage{}, fmt.Errorf("fetch directory: %w", err)
	}
	return p, nil
}

// Tiles returns the log of an origin below the service's own URL. The error wraps id.ErrMalformed.
func (c *Client) Tiles(origin id.Origin) (*Tiles, error) {
	o, err := origin.Organization()
	if err != nil {
		return nil, err
	}
	public := *c
	public.token, public.base = "", c.base+"/o/"+origin.Below(o)
	return &Tiles{client: &public, prefix: public.base}, nil
}
