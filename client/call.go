package client

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"
)

// maxAnswer is the size in bytes of the largest answer that is read.
const maxAnswer int64 = 64 << 20

// call is one request, as often as it is tried.
type call struct {
	method string
	path   string // escaped, from the slash after the base URL on, query included
	body   []byte // nil for none
	media  string // of body and answer, "" means JSON
	ingest bool   // sends the token and the version
	once   string // Idempotency-Key, "" for none
	max    int64  // bytes of the longest answer that is read, 0 means maxAnswer
}

// Media types.
const (
	mediaJSON   = "application/json"
	mediaNDJSON = "application/x-ndjson"
)

// do makes a call until it succeeds, may not be tried again or has used up its
// tries, and returns the body of a 2xx answer.
func (c *Client) do(ctx context.Context, q call) ([]byte, error) {
	for try := 1; ; try++ {
		body, err := c.try(ctx, q)
		if err == nil {
			return body, nil
		}
		if err := c.retry.next(ctx, try, err); err != nil {
			return nil, err
		}
	}
}

func (c *Client) try(ctx context.Context, q call) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	r, err := c.request(ctx, q)
	if err != nil {
		return nil, &finalError{err}
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	max := cmp.Or(q.max, maxAnswer)
	body, err := readAnswer(answer, max)
	switch {
	case answer.StatusCode/100 != 2:
		return nil, errorOf(answer, body)
	case err != nil:
		return nil, fmt.Errorf("read answer: %w", err)
	case int64(len(body)) > max:
		return nil, badAnswer(fmt.Errorf("longer than %d bytes", max))
	}
	return body, nil
}

// readAnswer reads at most a byte more than max, at once where the length is told.
func readAnswer(answer *http.Response, max int64) ([]byte, error) {
	var b bytes.Buffer
	if told := answer.ContentLength; told > 0 && told <= max {
		b.Grow(int(told) + bytes.MinRead)
	}
	_, err := b.ReadFrom(io.LimitReader(answer.Body, max+1))
	return b.Bytes(), err
}

func (c *Client) request(ctx context.Context, q call) (*http.Request, error) {
	if q.ingest && c.token == "" {
		return nil, ErrNoToken
	}
	r, err := http.NewRequestWithContext(ctx, q.method, c.base+q.path, bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	media := cmp.Or(q.media, mediaJSON)
	r.Header.Set("Accept", media)
	if q.body != nil {
		r.Header.Set("Content-Type", media)
	}
	if q.ingest {
		r.Header.Set("Authorization", "Bearer "+c.token)
		r.Header.Set("Service-Version", c.version)
	}
	if q.once != "" {
		r.Header.Set("Idempotency-Key", q.once)
	}
	return r, nil
}

// get fetches a public resource and decodes it into v. Members that v does not
// have are ignored, so that a service may add some.
func (c *Client) get(ctx context.Context, path string, v any) error {
	body, err := c.do(ctx, call{method: http.MethodGet, path: path})
	if err != nil {
		return err
	}
	return decode(body, v)
}

func decode(body []byte, v any) error {
	if err := json.Unmarshal(body, v); err != nil {
		return badAnswer(err)
	}
	return nil
}
