package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/agentledger/agentledger/id"
)

// GrantHeader carries the grant of an approved request to the tool, as base64 of
// the signed note.
const GrantHeader = "Agentledger-Grant"

// Transport is an http.RoundTripper whose requests are guarded actions.
type Transport struct {
	Guard *Guard
	Base  http.RoundTripper // default: http.DefaultTransport

	// Describe says what action a request is; default: DescribeRequest.
	Describe func(r *http.Request, body []byte) (Action, error)
}

// MaxRequestBody is the size in bytes of the largest body that a Transport sends:
// the decision is about all of it.
const MaxRequestBody = 8 << 20

// ErrRepeated is returned for a request whose action was done before: its answer is
// not there any more.
var ErrRepeated = errors.New("the request was made before")

// DescribeRequest is the action of a request: the tool http.<method>, the payload
// method, host, path, query and SHA-256 of the body, and as key the
// Idempotency-Key with method and address; without that header each request is an
// action of its own.
func DescribeRequest(r *http.Request, body []byte) (Action, error) {
	sum := sha256.Sum256(body)
	a := Action{
		Tool: id.Tool("http." + strings.ToLower(r.Method)),
		Payload: map[string]any{
			"method": r.Method, "host": r.URL.Host, "path": r.URL.EscapedPath(), "query": r.URL.RawQuery, "body_sha256": hex.EncodeToString(sum[:]),
		},
	}
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		a.Key = r.Method + " " + r.URL.Scheme + "://" + r.URL.Host + r.URL.EscapedPath() + " " + key
	}
	return a, nil
}

// RoundTrip makes a request, once, if it is allowed. Errors are those of Guard.Run,
// of the base transport, and ErrRepeated.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := readRequest(r)
	if err != nil {
		return nil, err
	}
	describe := t.Describe
	if describe == nil {
		describe = DescribeRequest
	}
	a, err := describe(r, body)
	if err != nil {
		return nil, fmt.Errorf("describe request: %w", err)
	}
	var answer *http.Response
	o, err := t.Guard.Run(r.Context(), a, func(_ context.Context, p Permit) (any, error) {
		var err error
		answer, err = t.send(r, body, p)
		if err != nil {
			return nil, err
		}
		return map[string]any{"status_code": answer.StatusCode}, nil
	})
	if err != nil {
		if answer != nil {
			err = errors.Join(err, answer.Body.Close())
		}
		return nil, err
	}
	if o.Repeated {
		return nil, fmt.Errorf("%w: %s", ErrRepeated, o.Result)
	}
	return answer, nil
}

// send makes the request itself, which is not changed: a RoundTripper leaves the
// caller's alone.
func (t *Transport) send(r *http.Request, body []byte, p Permit) (*http.Response, error) {
	sent := r.Clone(r.Context())
	if r.Body != nil {
		sent.Body = io.NopCloser(bytes.NewReader(body))
	}
	if p.Grant != "" {
		sent.Header.Set(GrantHeader, base64.StdEncoding.EncodeToString([]byte(p.Grant)))
	}
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	return base.RoundTrip(sent)
}

func readRequest(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxRequestBody+1))
	if err = errors.Join(err, r.Body.Close()); err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	if len(body) > MaxRequestBody {
		return nil, fmt.Errorf("read request: longer than %d bytes", MaxRequestBody)
	}
	return body, nil
}
