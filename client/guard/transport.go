package guard

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
	"unicode/utf8"

	"github.com/agentledger/agentledger/id"
)

// GrantHeader is the header in which a tool receives the grant of an approved request:
// the base64 of the signed note.
const GrantHeader = "Agentledger-Grant"

// CallHeader is the header in which a tool receives Permit.Approved with the grant, or Permit.Payload
// with the intent, in base64.
const CallHeader = "Agentledger-Call"

// IntentHeader is the header in which a tool receives Permit.Intent, if Transport.Receipts is set.
const IntentHeader = "Agentledger-Intent"

// ReceiptHeader is the header of an answer in which a tool states what it did: the base64 of a signed
// note. The result event has it as the member receipt. See grant.Receipt.
const ReceiptHeader = "Agentledger-Receipt"

// maxReceipt is the maximum size of ReceiptHeader. A longer one is left out.
const maxReceipt = 4096

// MaxRequestBody is the maximum size in bytes of a body that a Transport sends. A Transport reads
// the whole body into memory, because the decision covers all of it.
const MaxRequestBody = 8 << 20

// ErrRepeated is returned for a request that was already made, because its answer is not stored.
var ErrRepeated = errors.New("the request was made before")

// Transport is an http.RoundTripper whose requests are guarded actions.
type Transport struct {
	Guard *Guard
	Base  http.RoundTripper // default: http.DefaultTransport

	// Describe returns the action of a request; default: DescribeRequest.
	Describe func(r *http.Request, body []byte) (Action, error)

	// Receipts asks servers for receipts of requests without an approval too. The server then receives
	// the names of organization, agent and event, and the payload that the event records.
	Receipts bool
}

// DescribeRequest returns the action of a request. The tool is http.<method>, and the payload
// contains method, host, path, query and the SHA-256 of the body. The key is the Idempotency-Key
// with method and address. A request without that header is a new action each time. The header
// traceparent is the action's, so wrap a Transport in one that sets it, and not the other way round.
func DescribeRequest(r *http.Request, body []byte) (Action, error) {
	sum := sha256.Sum256(body)
	a := Action{
		Tool: id.Tool("http." + strings.ToLower(r.Method)),
		Payload: map[string]any{
			"method": r.Method, "host": r.URL.Host, "path": r.URL.EscapedPath(), "query": r.URL.RawQuery,
			"body_sha256": hex.EncodeToString(sum[:]),
		},
		Traceparent: r.Header.Get("Traceparent"),
	}
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		a.Key = r.Method + " " + r.URL.Scheme + "://" + r.URL.Host + r.URL.EscapedPath() + " " + key
	}
	return a, nil
}

// RoundTrip makes a request once, if it is allowed. Errors are those of Guard.Run and of the base
// transport, and ErrRepeated.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := readRequestBody(r)
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
	a.Receipt = a.Receipt || t.Receipts
	var answer *http.Response
	o, err := t.Guard.Run(r.Context(), a, func(_ context.Context, p Permit) (any, error) {
		var err error
		answer, err = t.sendRequest(r, body, p)
		if err != nil {
			return nil, err
		}
		return describeAnswer(answer), nil
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

// describeAnswer returns the result of a request. The guard does not check the receipt: whoever knows the
// tool's key can.
func describeAnswer(answer *http.Response) any {
	output := map[string]any{"status_code": answer.StatusCode}
	header := answer.Header.Get(ReceiptHeader)
	note, err := base64.StdEncoding.DecodeString(header)
	if header == "" || len(header) > maxReceipt || err != nil || !utf8.Valid(note) {
		return output
	}
	return Disclosed{Output: output, Members: map[string]any{"receipt": string(note)}}
}

// sendRequest sends a copy of the request, because a RoundTripper must not change the
// caller's request.
func (t *Transport) sendRequest(r *http.Request, body []byte, p Permit) (*http.Response, error) {
	sent := r.Clone(r.Context())
	if r.Body != nil {
		sent.Body = io.NopCloser(bytes.NewReader(body))
	}
	if p.Grant != "" {
		sent.Header.Set(GrantHeader, base64.StdEncoding.EncodeToString([]byte(p.Grant)))
		sent.Header.Set(CallHeader, base64.StdEncoding.EncodeToString([]byte(p.Approved)))
	} else if p.Intent != "" {
		sent.Header.Set(IntentHeader, p.Intent)
		sent.Header.Set(CallHeader, base64.StdEncoding.EncodeToString([]byte(p.Payload)))
	}
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	return base.RoundTrip(sent)
}

func readRequestBody(r *http.Request) ([]byte, error) {
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
