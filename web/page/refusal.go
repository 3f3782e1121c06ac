package page

import (
	"errors"
	"net/http"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
)

// refusal is the reason why the service refuses a page or a form.
type refusal struct {
	Refused
	Code       string
	RequestID  string // only for 5xx
	RetryAfter string // in seconds; "" if absent

	cause error // an internal error, which is logged
}

// refusalFor returns the refusal for an error. It returns nil if the edge handles the error, because another node owns
// the organization.
func (r *Request) refusalFor(err error) *refusal {
	if elsewhere := (*admission.Elsewhere)(nil); errors.As(err, &elsewhere) || fault.Of(err).Code == "not_owner" {
		return nil
	}
	err = edge.EndedEarly(err)
	body := edge.DescribeError(err)
	refused := &refusal{Refused: Refused{edge.StatusOf(err), body.Error}, Code: body.Code, RetryAfter: edge.RetryAfter(err)}
	if refused.Status >= http.StatusInternalServerError {
		refused.RequestID, refused.cause = r.w.Header().Get(edge.RequestIDHeader), err
	}
	return refused
}

// Refused is the content of a page that cannot be shown.
type Refused struct {
	Status  int
	Message string
}

// Reason returns the standard words for the status.
func (r Refused) Reason() string { return http.StatusText(r.Status) }

// Title returns the title of the page.
func (r Refused) Title() string {
	switch {
	case r.Status == http.StatusNotFound || r.Status == http.StatusGone:
		return "This page is not here"
	case r.Status == http.StatusForbidden:
		return "This page is not for you"
	case r.Status == http.StatusTooManyRequests || r.Status >= http.StatusInternalServerError:
		return "The service can't answer at the moment"
	}
	return "This does not work"
}

// SetCookie sets a cookie in the answer.
func (r *Request) SetCookie(c *http.Cookie) { http.SetCookie(r.w, c) }
