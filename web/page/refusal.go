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
	Status     int
	Message    string
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
	refused := &refusal{Status: edge.StatusOf(err), Message: body.Error, Code: body.Code, RetryAfter: edge.RetryAfter(err)}
	if refused.Status >= http.StatusInternalServerError {
		refused.RequestID, refused.cause = r.w.Header().Get(edge.RequestIDHeader), err
	}
	return refused
}

// SetCookie sets a cookie in the answer.
func (r *Request) SetCookie(c *http.Cookie) { http.SetCookie(r.w, c) }
