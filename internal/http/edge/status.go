package edge

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// retryAfter is the Retry-After of a response if the fault has none.
const retryAfter = time.Second

// statusOfKind returns the status of a kind of faults.
func statusOfKind(k fault.Kind) int {
	switch k {
	case fault.Invalid:
		return http.StatusUnprocessableEntity
	case fault.Unauthorized:
		return http.StatusUnauthorized
	case fault.Forbidden:
		return http.StatusForbidden
	case fault.NotFound:
		return http.StatusNotFound
	case fault.Conflict:
		return http.StatusConflict
	case fault.Gone:
		return http.StatusGone
	case fault.TooLarge:
		return http.StatusRequestEntityTooLarge
	case fault.TooSlow:
		return http.StatusRequestTimeout
	case fault.UnsupportedMedia:
		return http.StatusUnsupportedMediaType
	case fault.PlanLimit, fault.RateLimited:
		return http.StatusTooManyRequests
	case fault.Overloaded, fault.OutcomeUnknown, fault.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// StatusOf returns the status of an error, for responses with several results, such as
// batches.
func StatusOf(err error) int { return statusOfKind(fault.Of(err).Kind) }

// ErrorBody is the JSON body of an error response.
type ErrorBody struct {
	Error     string `json:"error"`
	Code      string `json:"code,omitzero"`
	RequestID string `json:"request_id,omitzero"` // only for 5xx
	Details   `json:",inline"`
}

// Details are further members of an error response, for developers of clients. If they are the cause
// of a fault, its response contains them.
type Details struct {
	EventDigest id.Hash        `json:"event_digest,omitzero"` // that must be signed
	Difference  jcs.Difference `json:"difference,omitzero"`   // between the body and its canonical form
}

// Error implements error. Its text is logged, so it contains nothing that a client sent.
func (*Details) Error() string { return "details were answered" }

// DescribeError returns the public part of an error.
func DescribeError(err error) ErrorBody {
	f := fault.Of(err)
	body := ErrorBody{Error: f.Message, Code: codeOfFault(f)}
	if details := (*Details)(nil); errors.As(f, &details) {
		body.Details = *details
	}
	return body
}

// codeOfFault returns the fault's code, or the default code of its kind.
func codeOfFault(f *fault.Error) string {
	if f.Code != "" {
		return f.Code
	}
	switch f.Kind {
	case fault.PlanLimit:
		return "plan_limit"
	case fault.RateLimited:
		return "rate_limited"
	case fault.Overloaded:
		return "overloaded"
	case fault.OutcomeUnknown:
		return "outcome_unknown"
	case fault.Unavailable:
		return "unavailable"
	}
	return ""
}

func (e *Edge) writeError(a *answer, f *fault.Error) {
	h := a.Header()
	status := statusOfKind(f.Kind)
	body := DescribeError(f)
	if status >= 500 {
		body.RequestID = a.id[0]
	}
	if after := RetryAfter(f); after != "" {
		h.Set("Retry-After", after)
	}
	if status == http.StatusUnauthorized && e.Challenge != "" {
		h.Set("WWW-Authenticate", e.Challenge)
	}
	for _, name := range []string{"Cache-Control", "Etag", "Last-Modified", "Content-Encoding", "Content-Length"} {
		h.Del(name) // set for a response that was not written
	}
	_ = WriteJSON(a, status, body) // an ErrorBody always marshals
}

// RetryAfter returns the Retry-After of the answer to an error, "" if it has none.
func RetryAfter(err error) string {
	f := fault.Of(err)
	if statusOfKind(f.Kind) != http.StatusServiceUnavailable && f.Kind != fault.RateLimited {
		return ""
	}
	return retryAfterSeconds(f.RetryAfter)
}

// retryAfterSeconds rounds up, because a client that retries too early is rejected again.
func retryAfterSeconds(d time.Duration) string {
	if d <= 0 {
		d = retryAfter
	}
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// WriteNoContent responds with 204, which must not be cached.
func WriteNoContent(w http.ResponseWriter) {
	w.Header()["Cache-Control"] = []string{"no-store"}
	w.WriteHeader(http.StatusNoContent)
}

// WriteJSON writes v. The response is not cached unless the handler has set Cache-Control. If it returns an
// error, v cannot be marshaled and nothing was written.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["X-Content-Type-Options"] = []string{"nosniff"}
	if len(h["Cache-Control"]) == 0 {
		h["Cache-Control"] = []string{"no-store"}
	}
	w.WriteHeader(status)
	_, _ = w.Write(b) // the client may have disconnected
	return nil
}
