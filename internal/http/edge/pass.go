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

// passer passes requests to the node that owns an organization (package forward).
type passer interface {
	// Owns reports whether this node answers requests for an organization. ctx is that of a request.
	Owns(ctx context.Context, t id.Tenant) bool
	// Pass answers a request whose body is unread with the answer of the owner. It returns false without an
	// error, and has written nothing, when this node owns the organization now; and for a public read with
	// admission.ErrAbsent when no owner can be reached.
	Pass(w http.ResponseWriter, r *http.Request, to *admission.Elsewhere) (passed bool, err error)
}

// CheckOwner returns an error for a request whose organization another node owns. A handler calls it once, when the
// organization is known. It MUST return the error as it is, before it reads the body and before it writes. Then the
// edge passes the request on, or calls the handler again when the organization has come to this node meanwhile.
// id.Service is no organization, and every node answers for it.
func (e *Edge) CheckOwner(ctx context.Context, t id.Tenant) error {
	if e.Passer == nil || t == id.Service || e.Passer.Owns(ctx, t) {
		return nil
	}
	return &admission.Elsewhere{Tenant: t}
}

// CheckReader is CheckOwner for a read of public values. If no owner can be reached, the handler is called again with a
// context by which the ledgers are read in place of the owner (takeover.StandsIn), and then CheckReader returns nil.
func (e *Edge) CheckReader(ctx context.Context, t id.Tenant) error {
	if err := e.CheckOwner(ctx, t); err != nil && !takeover.StandsIn(ctx) {
		return &admission.Elsewhere{Tenant: t, Public: true}
	}
	return nil
}

// CheckOwnerByBody is CheckOwner for a request whose body names the organization, and was read. The body is passed too.
func (e *Edge) CheckOwnerByBody(ctx context.Context, t id.Tenant, body []byte) error {
	if err := e.CheckOwner(ctx, t); err != nil {
		return &admission.Elsewhere{Tenant: t, Body: body}
	}
	return nil
}

// CheckLost returns the error of a handler that has read the whole body, or no part, which is nil. For a ledger that
// went to another node in the meantime it is an error by which the request is passed on, because nothing was done here.
func (e *Edge) CheckLost(err error, t id.Tenant, body []byte) error {
	if e.Passer == nil || t == id.Service || err == nil || fault.Of(err).Code != notOwner {
		return err
	}
	return &admission.Elsewhere{Tenant: t, Body: body}
}

// KeepBody makes a request keep the bytes of its body that are read. kept returns them for CheckLost, nil for none.
// Nothing is kept without a Passer.
func (e *Edge) KeepBody(r *http.Request) (kept func() []byte) {
	if e.Passer == nil || r.Body == nil {
		return func() []byte { return nil }
	}
	b := &keptBody{ReadCloser: r.Body}
	r.Body = b
	return func() []byte { return b.text }
}

// keptBody is a body that keeps the bytes that were read.
type keptBody struct {
	io.ReadCloser
	text []byte
}

// Read implements io.Reader.
func (b *keptBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.text = append(b.text, p[:n]...)
	return n, err
}

// passTries bounds how often a request meets an owner that is another one at the next look.
const passTries = 8

// serveOrPass calls h, and passes the request on when another node owns its organization.
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
		if !errors.As(err, &elsewhere) || a.status != 0 { // the rest of an answer can't come from another node
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
		Message: "The organization moves to another node; try again"}
}

// lostOwnership reports whether a read found that its organization had just gone to another node. Then the handler is
// called again, and asks for the owner again. For other requests, handlers call CheckLost.
func (a *answer) lostOwnership(r *http.Request, err error) bool {
	reads := (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.ContentLength == 0
	return err != nil && reads && a.status == 0 && fault.Of(err).Code == notOwner
}

// notOwner is the code of a ledger that another node owns (package log).
const notOwner = "not_owner"

// withBody returns a request with a body that was read, or as it is for nil.
func withBody(r *http.Request, body []byte) *http.Request {
	if body == nil {
		return r
	}
	r = r.WithContext(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return r
}
