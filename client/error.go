package client

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/header"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// Errors that retrying cannot resolve. The methods of this package wrap them.
var (
	// ErrNoToken is returned by calls that need an ingest key if Config.Token is "".
	ErrNoToken = errors.New("no ingest key")
	// ErrRequest is returned for a request that cannot be built, for example because its path is
	// malformed.
	ErrRequest = errors.New("malformed request")
	// ErrAnswer is returned for a malformed 2xx answer.
	ErrAnswer = errors.New("malformed answer")
)

// Error is an answer of the service with a status other than 2xx.
type Error struct {
	Status     int           // HTTP status
	Code       string        // for programs, such as plan_limit; may be ""
	Message    string        // for humans, one line
	RequestID  string        // ID of the request in the operator's log; may be ""
	RetryAfter time.Duration // from the header of that name, at most an hour; 0 if absent

	// Proved means that the answer is provably the service's, not that of a proxy: its body has the
	// form of the service's errors, and it has the request ID.
	Proved bool
}

// Error returns status, message, code and request ID.
func (e *Error) Error() string {
	text := fmt.Sprintf("%d %s", e.Status, e.Message)
	if e.Code != "" {
		text += " [" + e.Code + "]"
	}
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

// IsRefused reports whether the service will never accept the event that was sent: err contains an
// *Error that is provably the service's and about the event, or a *fault.Error from a check before
// sending. After any other error the event was not delivered: keep it, and send it again.
func IsRefused(err error) bool {
	if _, malformed := errors.AsType[*fault.Error](err); malformed {
		return true
	}
	answer, ok := errors.AsType[*Error](err)
	if !ok || !answer.Proved {
		return false
	}
	switch answer.Status {
	case http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	case http.StatusForbidden:
		return strings.HasPrefix(answer.Message, "Organization mismatch")
	}
	return false
}

// IsUnreachable reports whether the call that returned err got no decision from the service: the
// connection failed or timed out, or the status was 5xx.
func IsUnreachable(err error) bool {
	if answer, ok := errors.AsType[*Error](err); ok {
		return answer.Status >= http.StatusInternalServerError
	}
	return err != nil && !isNeverRetried(err) && !IsRefused(err)
}

func isNeverRetried(err error) bool {
	return errors.Is(err, ErrNoToken) || errors.Is(err, ErrRequest) || errors.Is(err, ErrAnswer)
}

// answerError is an ErrAnswer with its cause.
type answerError struct{ cause error }

func (e *answerError) Error() string        { return "answer: " + e.cause.Error() }
func (e *answerError) Unwrap() error        { return e.cause }
func (e *answerError) Is(target error) bool { return target == ErrAnswer }

func malformedAnswer(err error) error { return &answerError{err} }

// errorBody is the body of the service's answers other than 2xx.
type errorBody struct {
	Error     string `json:"error"`
	Code      string `json:"code"`
	RequestID string `json:"request_id"`
}

// toStatusError returns the *Error of an answer, or of a line of it. requestID is the answer's header.
func (b errorBody) toStatusError(status int, requestID string) *Error {
	message := cmp.Or(b.Error, http.StatusText(status))
	stated := cmp.Or(b.RequestID, requestID)
	return &Error{Status: status, Code: sanitizeLine(b.Code), Message: sanitizeLine(message),
		RequestID: sanitizeLine(stated), Proved: b.Error != "" && requestID != "" && stated == requestID}
}

// maxRetryAfter limits Retry-After, which may be a proxy's.
const maxRetryAfter = time.Hour

// headerRequestID is the header of every answer of the service.
const headerRequestID = "X-Request-Id"

// readErrorAnswer returns the *Error of an answer. It ignores a body of another form, such as a
// proxy's page.
func readErrorAnswer(r *http.Response, body []byte) *Error {
	var b errorBody
	if json.Unmarshal(body, &b) != nil {
		b = errorBody{}
	}
	e := b.toStatusError(r.StatusCode, r.Header.Get(headerRequestID))
	e.RetryAfter = min(header.RetryAfter(r.Header, time.Now()), maxRetryAfter)
	return e
}

// sanitizeLine makes a text from the service safe for terminals and logs: only printable
// characters, at most 512 bytes.
func sanitizeLine(s string) string {
	return textcheck.Printable(strings.ToValidUTF8(s[:min(len(s), 512)], "?"))
}
