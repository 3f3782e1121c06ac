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

// Errors that no further try would mend. The methods of this package wrap them.
var (
	// ErrNoToken is returned by calls that need an ingest key when Config.Token is "".
	ErrNoToken = errors.New("no ingest key")
	// ErrRequest is returned for a request that can't be made, for example because its path
	// is malformed.
	ErrRequest = errors.New("malformed request")
	// ErrAnswer is returned for an answer of status 2xx that is malformed.
	ErrAnswer = errors.New("malformed answer")
)

// Error is an answer of the service with another status than 2xx.
type Error struct {
	Status     int           // HTTP status
	Code       string        // for programs, such as plan_limit; "" when there is none
	Message    string        // for people, one line
	RequestID  string        // name of the request in the operator's log; may be ""
	RetryAfter time.Duration // from the header of that name; 0 when there is none
}

// Error returns status, message, code and request id.
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

// IsRefused reports whether the service will never accept the same request: err holds an
// *Error of status 4xx, or a *fault.Error from a check before sending. It is false for
// 401, 408 and 429, because those can end.
func IsRefused(err error) bool {
	if _, malformed := errors.AsType[*fault.Error](err); malformed {
		return true
	}
	answer, ok := errors.AsType[*Error](err)
	return ok && answer.Status/100 == 4 && answer.Status != http.StatusTooManyRequests &&
		answer.Status != http.StatusRequestTimeout && answer.Status != http.StatusUnauthorized
}

// IsUnreachable reports whether the call behind err got no decision of the service. The
// connection or its time-out failed, or the status was 5xx.
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

// errorBody is the service's body of an answer that is not 2xx.
type errorBody struct {
	Error     string `json:"error"`
	Code      string `json:"code"`
	RequestID string `json:"request_id"`
}

func (b errorBody) toStatusError(status int) *Error {
	if b.Error == "" {
		b.Error = http.StatusText(status)
	}
	return &Error{Status: status, Code: sanitizeLine(b.Code), Message: sanitizeLine(b.Error),
		RequestID: sanitizeLine(b.RequestID)}
}

// readErrorAnswer returns the *Error of an answer. It ignores a body in another form, for
// example a proxy's page.
func readErrorAnswer(r *http.Response, body []byte) *Error {
	var b errorBody
	if json.Unmarshal(body, &b) != nil {
		b = errorBody{}
	}
	b.RequestID = cmp.Or(b.RequestID, r.Header.Get("X-Request-Id"))
	e := b.toStatusError(r.StatusCode)
	e.RetryAfter = header.RetryAfter(r.Header, time.Now())
	return e
}

// sanitizeLine makes a text of the service safe for a terminal and a log: only characters that are printed, in at most 512
// bytes.
func sanitizeLine(s string) string {
	return textcheck.Printable(strings.ToValidUTF8(s[:min(len(s), 512)], "?"))
}
