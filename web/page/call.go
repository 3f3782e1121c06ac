package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"
	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
)

// maxAnswer is the maximum size, in bytes, of an answer of the interface.
const maxAnswer = 16 << 20

// Refusal is the reason why the service refuses a page or a form.
type Refusal struct {
	Status     int
	Message    string `json:"error"`
	Code       string `json:"code"`
	Reason     string `json:"reason"` // of /health only
	RequestID  string `json:"request_id"`
	RetryAfter string `json:"-"` // in seconds; "" if absent

	cause error // an internal error, which is logged
}

// Error returns the message of the interface.
func (r *Refusal) Error() string { return r.Message }

// refusalFor returns the refusal for an error of the interface or of a call. It returns nil if the edge handles the
// error, because another node owns the organization.
func (r *Request) refusalFor(err error) *Refusal {
	if refused := (*Refusal)(nil); errors.As(err, &refused) {
		return refused
	}
	if elsewhere := (*admission.Elsewhere)(nil); errors.As(err, &elsewhere) || fault.Of(err).Code == "not_owner" {
		return nil
	}
	err = edge.EndedEarly(err)
	body := edge.DescribeError(err)
	refused := &Refusal{Status: edge.StatusOf(err), Message: body.Error, Code: body.Code, RetryAfter: edge.RetryAfter(err)}
	if refused.Status >= http.StatusInternalServerError {
		refused.RequestID, refused.cause = r.w.Header().Get(edge.RequestIDHeader), err
	}
	return refused
}

// Read reads a resource of the interface into a value. If the interface refuses, it returns a *Refusal.
func (r *Request) Read(path string, query url.Values, into any) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return r.call(http.MethodGet, path, nil, into)
}

// ReadWithHeader reads a resource, with a request header that selects it.
func (r *Request) ReadWithHeader(path, name, value string, into any) error {
	r.Header.Set(name, value)
	defer r.Header.Del(name)
	return r.call(http.MethodGet, path, nil, into)
}

// Change makes a change through the interface and decodes the answer into a value unless it is nil. If body is nil, the
// request has no body.
func (r *Request) Change(method, path string, body, into any) error {
	return r.call(method, path, body, into)
}

func (r *Request) call(method, path string, body, into any) error {
	call, err := r.newCall(method, path, body)
	if err != nil {
		return err
	}
	got := &recorder{header: http.Header{}}
	r.server.calls.ServeHTTP(got, call)
	r.takeCookies(got.header)
	if got.status >= http.StatusBadRequest {
		return got.refusal()
	}
	if got.overflow {
		return fmt.Errorf("call %s %s: the answer is longer than %d bytes", method, path, maxAnswer)
	}
	if into == nil || got.body.Len() == 0 {
		return nil
	}
	if err := json.Unmarshal(got.body.Bytes(), into); err != nil {
		return fmt.Errorf("call %s %s: %w", method, path, err)
	}
	return nil
}

// newCall returns the request of a call. It copies headers of the page's request: the cookie, the requesting site, and
// the headers in which a proxy passes the client's address.
func (r *Request) newCall(method, path string, body any) (*http.Request, error) {
	// The router would take the page's route for the prefix of the call's route.
	ctx := context.WithValue(r.Context(), chi.RouteCtxKey, (*chi.Context)(nil))
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return nil, fmt.Errorf("call %s %s: %w", method, path, err)
		}
	}
	call, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(content))
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, "Not found", err)
	}
	call.Header, call.Host, call.RemoteAddr, call.TLS = r.Header.Clone(), r.Host, r.RemoteAddr, r.TLS
	for _, name := range []string{"Accept", "Accept-Encoding", "Content-Encoding", "Content-Length", "Content-Type",
		"If-None-Match", "If-Modified-Since", "Range"} {
		call.Header.Del(name)
	}
	if body != nil {
		call.Header.Set("Content-Type", "application/json")
	} else {
		call.Body, call.ContentLength = http.NoBody, 0
	}
	return call, nil
}

// takeCookies passes the cookies of an answer to the browser and to later calls.
func (r *Request) takeCookies(from http.Header) {
	answer := http.Response{Header: from}
	for _, c := range answer.Cookies() {
		http.SetCookie(r.w, c)
		cookies := r.Cookies()
		r.Header.Del("Cookie")
		for _, old := range cookies {
			if old.Name != c.Name {
				r.AddCookie(old)
			}
		}
		if c.MaxAge >= 0 && c.Value != "" {
			r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
		}
	}
}

// SetCookie sets a cookie of the page itself.
func (r *Request) SetCookie(c *http.Cookie) { http.SetCookie(r.w, c) }

// recorder records an answer in memory.
type recorder struct {
	header   http.Header
	status   int
	body     bytes.Buffer
	overflow bool
}

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// Write implements http.ResponseWriter.
func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.body.Len()+len(p) > maxAnswer {
		w.overflow = true
		return 0, io.ErrShortWrite
	}
	return w.body.Write(p)
}

func (w *recorder) refusal() error {
	refused := &Refusal{Status: w.status, RetryAfter: w.header.Get("Retry-After")}
	if err := json.Unmarshal(w.body.Bytes(), refused); err != nil || refused.Message == "" {
		refused.Message = http.StatusText(w.status)
	}
	return refused
}
