package client

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/jcs"
)

// maxAnswer is the maximum size of an answer in bytes.
const maxAnswer int64 = 64 << 20

// call is one request, which may be tried several times.
type call struct {
	method string
	path   string // escaped, beginning with the slash after the base URL, including the query
	body   []byte // nil if there is none
	media  string // of body and answer; "" means JSON
	ingest bool   // whether to send the token and the version
	once   string // Idempotency-Key, or ""
	asks   string // header to send with the value 1, or ""
	proves bool   // whether to send the subject token
	max    int64  // maximum size of the answer in bytes; 0 means maxAnswer
}

// Media types.
const (
	mediaJSON   = "application/json"
	mediaNDJSON = "application/x-ndjson"
)

// Call makes a request of the ingest API that has no method of its own. It sends the token and
// retries as configured by Config.Retry, so the request MUST be safe to repeat. path must be
// escaped and begin with a slash; it may have a query. body is encoded as JSON, unless it is nil or
// already a jsontext.Value. The answer is decoded into answer, unless that is nil. Unknown members
// are ignored, so that the service may add members.
//
// Errors are *Error for a status other than 2xx, ErrNoToken, ErrRequest, ErrAnswer, context errors
// and errors of Config.HTTP.
func (c *Client) Call(ctx context.Context, method, path string, body, answer any) error {
	text, encoded := body.(jsontext.Value)
	if body != nil && !encoded {
		var err error
		if text, err = jcs.Marshal(body); err != nil {
			return fmt.Errorf("encode: %w", err)
		}
	}
	received, err := c.sendWithRetries(ctx, call{method: method, path: path, body: text, ingest: true})
	if err != nil || answer == nil {
		return err
	}
	return decodeAnswer(received, answer)
}

// sendWithRetries makes a call until it succeeds, may not be retried or its tries are exhausted. It
// returns the body of a 2xx answer.
func (c *Client) sendWithRetries(ctx context.Context, q call) ([]byte, error) {
	for try := 1; ; try++ {
		answer, err := c.sendRequestOnce(ctx, q)
		if err == nil {
			return answer.body, nil
		}
		if err := c.retry.waitForNext(ctx, try, err, isRetryable); err != nil {
			return nil, err
		}
	}
}

// received is a 2xx answer.
type received struct {
	body      []byte
	requestID string
}

func (c *Client) sendRequestOnce(ctx context.Context, q call) (received, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	r, err := c.newRequest(ctx, q)
	if err != nil {
		return received{}, err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return received{}, err
	}
	defer answer.Body.Close()
	limit := cmp.Or(q.max, maxAnswer)
	body, err := readAnswer(answer, limit)
	switch {
	case answer.StatusCode/100 != 2:
		return received{}, readErrorAnswer(answer, body)
	case err != nil:
		return received{}, fmt.Errorf("read answer: %w", err)
	case int64(len(body)) > limit:
		return received{}, malformedAnswer(fmt.Errorf("longer than %d bytes", limit))
	}
	return received{body, answer.Header.Get(headerRequestID)}, nil
}

// readAnswer reads at most limit+1 bytes, with one allocation if the length is known.
func readAnswer(answer *http.Response, limit int64) ([]byte, error) {
	var b bytes.Buffer
	if length := answer.ContentLength; length > 0 && length <= limit {
		b.Grow(int(length) + bytes.MinRead)
	}
	_, err := b.ReadFrom(io.LimitReader(answer.Body, limit+1))
	return b.Bytes(), err
}

func (c *Client) newRequest(ctx context.Context, q call) (*http.Request, error) {
	if q.ingest && c.token == "" {
		return nil, ErrNoToken
	}
	r, err := http.NewRequestWithContext(ctx, q.method, c.base+q.path, bytes.NewReader(q.body))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
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
	if q.asks != "" {
		r.Header.Set(q.asks, "1")
	}
	if q.proves && c.subject != nil {
		token, err := c.subject(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w: subject token: %w", ErrRequest, err)
		}
		if token != "" {
			r.Header.Set("Agentledger-Subject-Token", token)
		}
	}
	if q.once != "" {
		r.Header.Set("Idempotency-Key", q.once)
	}
	return r, nil
}

// fetchPublicJSON fetches a public resource and decodes it into v. Unknown members are ignored, so
// that the service may add members.
func (c *Client) fetchPublicJSON(ctx context.Context, path string, v any) error {
	body, err := c.sendWithRetries(ctx, call{method: http.MethodGet, path: path})
	if err != nil {
		return err
	}
	return decodeAnswer(body, v)
}

func decodeAnswer(body []byte, v any) error {
	if err := json.Unmarshal(body, v); err != nil {
		return malformedAnswer(err)
	}
	return nil
}
