package forward

import (
	"io"
	"net/http"
	"time"

	"github.com/agentledger/agentledger/internal/http/admission"
)

// Hurry shortens the waiting times of a proxy.
func (p *Proxy) Hurry(owner, hop, doubt, moved time.Duration) {
	p.timing.owner, p.timing.hop, p.timing.doubt, p.timing.moved = owner, hop, doubt, moved
}

// HurryReaders is Hurry for public reads.
func (p *Proxy) HurryReaders(absent, silent time.Duration) {
	p.timing.absent, p.timing.silent = absent, silent
}

// HurryAnswers is Hurry for the parts of responses.
func (p *Proxy) HurryAnswers(part time.Duration) { p.timing.part = part }

// Refused returns the body of an attempt that a node rejected, and whether the request can be sent to another node.
// readBefore means that a byte of the body was read before the rejection arrived.
func Refused(r *http.Request, readBefore bool) (body io.Reader, again bool) {
	x := newPassage(New(Options{}), nil, r, &admission.Elsewhere{})
	body = x.nextBody()
	if readBefore {
		_, _ = body.Read(make([]byte, 1))
	}
	return body, x.isRefused(&http.Response{Header: http.Header{hopRefused: {"1"}}})
}

// RetryAfter is when an owner that could not be reached is tried again.
const RetryAfter = retryAfter
