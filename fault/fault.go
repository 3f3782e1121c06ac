// Package fault defines the errors of the service: a kind, which tells the caller how to react, and
// a message that the caller may see.
//
// Invariants:
//
//   - Message is safe to show to any client: it contains no cause, no value that the client sent
//     and nothing of another organization.
//   - The cause (Err) is for logs only. errors.Is and errors.As find it.
//   - An error that is not a *Error counts as Internal.
//
// The package is stable in the sense of README, section Stability.
package fault

import (
	"errors"
	"time"
)

// Kind classifies an error by how the caller can react. The HTTP layer maps it to a status.
type Kind uint8

const (
	Internal         Kind = iota // a bug or a failure of the service; the log has the cause
	Invalid                      // change the request
	Unauthorized                 // authenticate with another credential
	Forbidden                    // the credential is valid but does not allow this
	NotFound                     // nothing of that name exists for this caller
	Conflict                     // the current state of the object does not allow this
	Gone                         // the object existed and has ended or expired
	TooLarge                     // send less
	TooSlow                      // send the body faster, on a new connection
	UnsupportedMedia             // send another media type or content coding
	PlanLimit                    // wait for the next period or change the plan
	RateLimited                  // slow down and retry later
	Overloaded                   // retry later; nothing was done
	OutcomeUnknown               // it may have been done: retry with the same identifiers
	Unavailable                  // retry later; reads may still work
)

// Error is an error with a kind and a text for the client.
type Error struct {
	Kind       Kind
	Code       string        // snake_case, for programs; "" if there is none
	Message    string        // for the client
	RetryAfter time.Duration // for the kinds that are retried later; if 0, the edge chooses
	Err        error         // the cause, may be nil; never shown to a client
}

// Error returns the message followed by the cause, if any. It is for logs, not for clients.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New returns an error of kind k with a text for the client.
func New(k Kind, message string) *Error { return &Error{Kind: k, Message: message} }

// Wrap returns an error of kind k with a text for the client and a cause.
func Wrap(k Kind, message string, err error) *Error {
	return &Error{Kind: k, Message: message, Err: err}
}

// Of returns the outermost *Error in err's chain, or an Internal one that wraps err.
func Of(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Kind: Internal, Message: "Internal error", Err: err}
}

// Is reports whether err is of kind k. A nil error is of no kind.
func Is(err error, k Kind) bool { return err != nil && Of(err).Kind == k }
