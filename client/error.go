package client

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/http/retryafter"
)

// ErrNoToken is returned by calls that need an ingest key when there is none.
var ErrNoToken = errors.New("no ingest key")

// Error is an answer of the service that is not the one asked for.
type Error struct {
	Status     int           // HTTP status
	Code       string        // for programs, such as plan_limit; "" when there is none
	Message    string        // what the service says, in one line
	RequestID  string        // by which the operator finds it in the log; may be ""
	RetryAfter time.Duration // when to come again; 0 when it was not said
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

// finalError is a failure that another try would not mend: a request that can't
// be made, an answer of the right status that can't be understood.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }
func (e *finalError) Unwrap() error { return e.err }

func badAnswer(err error) error { return &finalError{fmt.Errorf("answer: %w", err)} }

// told is the body of an answer that is not a success.
type told struct {
	Error     string `json:"error"`
	Code      string `json:"code"`
	RequestID string `json:"request_id"`
}

func (t told) as(status int) *Error {
	if t.Error == "" {
		t.Error = http.StatusText(status)
	}
	return &Error{Status: status, Code: oneLine(t.Code), Message: oneLine(t.Error), RequestID: oneLine(t.RequestID)}
}

// errorOf reads an answer that is not a success. A body that isn't the
// service's, a proxy's page for example, is left aside.
func errorOf(r *http.Response, body []byte) *Error {
	var t told
	if json.Unmarshal(body, &t) != nil {
		t = told{}
	}
	t.RequestID = cmp.Or(t.RequestID, r.Header.Get("X-Request-Id"))
	e := t.as(r.StatusCode)
	e.RetryAfter = retryafter.Of(r.Header, time.Now())
	return e
}

// oneLine makes a text of the service fit for a terminal and a log: no control
// characters, at most 512 bytes.
func oneLine(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), 512)], "?")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r <= 0x9f {
			return '?'
		}
		return r
	}, s)
}
