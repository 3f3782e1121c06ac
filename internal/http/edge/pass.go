package edge

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/log/takeover"
)

// passer forwards requests to the node that owns an organization (package forward).
type passer interface {
	// Owns reports whether this node serves requests for an organization. ctx is the context of a request.
	Owns(ctx context.Context, t id.Tenant) bool
	// Pass responds to a request whose body is unread with the response of the owner. It returns false and nil,
	// and has written nothing, if this node owns the organization now. For a public read it returns
	// admission.ErrAbsent if no owner is reachable.
	Pass(w http.ResponseWriter, r *http.Request, to *admission.Elsewhere) (passed bool, err error)
}

// CheckOwner returns an error if another node owns the organization. A handler must call it once, when the
// organization is known, and return the error unchanged before it reads the body or writes. Then the
// edge forwards the request, or calls the handler again if this node owns the organization in the meantime.
// id.Service is not an organization: every node serves it.
func (e *Edge) CheckOwner(ctx context.Context, t id.Tenant) error {
	if e.Passer == nil || t == id.Service || e.Passer.Owns(ctx, t) {
		return nil
	}
	return &admission.Elsewhere{Tenant: t}
}

// CheckReader is CheckOwner for a public read. If no owner is reachable, the handler is called again with a
// context that allows reading the ledger as a replica (takeover.StandsIn), and then CheckReader returns nil.
func (e *Edge) CheckReader(ctx context.Context, t id.Tenant) error {
	if err := e.CheckOwner(ctx, t); err != nil && !takeover.StandsIn(ctx) {
		return &admission.Elsewhere{Tenant: t, Public: true}
	}
	return nil
}

// CheckOwnerByBody is CheckOwner for a request whose body was read because it names the organization. The body is
// forwarded too.
func (e *Edge) CheckOwnerByBody(ctx context.Context, t id.Tenant, body []byte) error {
	if err := e.CheckOwner(ctx, t); err != nil {
		return &admission.Elsewhere{Tenant: t, Body: body}
	}
	return nil
}

// CheckLost returns the error of a handler that has read the whole body, or none of it if body is nil. If another node has
// acquired the ledger in the meantime, it returns the error with which the request is forwarded, because nothing was done
// here.
func (e *Edge) CheckLost(err error, t id.Tenant, body []byte) error {
	if e.Passer == nil || t == id.Service || err == nil || fault.Of(err).Code != notOwner {
		return err
	}
	return &admission.Elsewhere{Tenant: t, Body: body}
}

// KeepBody records the bytes of a request's body as they are read. recorded returns them for CheckLost, or nil.
// Without a Passer it records nothing.
func (e *Edge) KeepBody(r *http.Request) (recorded func() []byte) {
	if e.Passer == nil || r.Body == nil {
		return func() []byte { return nil }
	}
	b := &recordedBody{ReadCloser: r.Body}
	r.Body = b
	return func() []byte { return b.text }
}

// recordedBody is a body that records the bytes that are read.
type recordedBody struct {
	io.ReadCloser
	text []byte
}

// Read implements io.Reader.
func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.text = append(b.text, p[:n]...)
	return n, err
}

// passTries bounds the attempts of a request whose organization's owner keeps changing.
const passTries = 8

// serveOrPass calls h, and forwards the request if another node owns its organization.
func (e *Edge) serveOrPass(h Handler, a *answer, r *http.Request) error {
	if e.Passer == nil {
		return h(a, r)
	}
	for range passTries {
		err := h(a, r)
		if a.lostOwnership(r, err) {
			continue
		}
		var elsewhere *admission.Elsewhere
		if !errors.As(err, &elsewhere) || a.status != 0 { // a response that has begun cannot continue on another node
			return err
		}
		passed, err := e.Passer.Pass(a, withBody(r, elsewhere.Body), elsewhere)
		switch {
		case errors.Is(err, admission.ErrAbsent):
			r = r.WithContext(takeover.WithStandIn(r.Context()))
			continue
		case passed || err != nil:
			return err
		}
		r = withBody(r, elsewhere.Body)
	}
	return &fault.Error{Kind: fault.Overloaded, Code: "overloaded", RetryAfter: time.Second,
		Message: "The organization is moving to another node; try again"}
}

// lostOwnership reports whether a read found that another node has just acquired its organization. Then the handler is
// called again and determines the owner again. For other requests, handlers call CheckLost.
func (a *answer) lostOwnership(r *http.Request, err error) bool {
	reads := (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.ContentLength == 0
	return err != nil && reads && a.status == 0 && fault.Of(err).Code == notOwner
}

// notOwner is the code of a ledger that another node owns (package log).
const notOwner = "not_owner"

// withBody returns a request with a body that was read, or r itself if body is nil.
func withBody(r *http.Request, body []byte) *http.Request {
	if body == nil {
		return r
	}
	r = r.WithContext(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return r
}
