// Package fault defines the errors of the service: a kind, which says how the caller can
// react, and a message that the caller may see.
//
// Invariants:
//
//   - Message is fit for any client: it names no cause, no value that the client
//     sent and nothing of another organization.
//   - The cause (Err) is for logs, and errors.Is and errors.As reach it.
//   - An error that is not a *Error is Internal.
//
// The package is stable in the sense of README, section Stability.
package fault

import (
	"errors"
	"time"
)

// Kind says how the caller can react to an error. The HTTP layer turns it into a status.
type Kind uint8

const (
	Internal         Kind = iota // nothing; look at the log
	Invalid                      // change the request
	Unauthorized                 // bring another credential
	Forbidden                    // the credential is good, this is not its business
	NotFound                     // there is nothing of that name for this caller
	Conflict                     // the state of the thing forbids it
	Gone                         // it was there and is over
	TooLarge                     // send less
	TooSlow                      // send it faster, on a new connection
	UnsupportedMedia             // send another media type or coding
	PlanLimit                    // wait for the next period or change the plan
	RateLimited                  // slow down, retry later
	Overloaded                   // retry later, nothing was done
	OutcomeUnknown               // it may have been done: retry with the same identifiers
	Unavailable                  // retry later; reading may still work
)

// Error is an error with a kind and a text for the client.
type Error struct {
	Kind       Kind
	Code       string        // snake_case for programs, "" when there is none
	Message    string        // for the client
	RetryAfter time.Duration // for the kinds that say "later"; 0 lets the edge choose
	Err        error         // the cause, may be nil; never shown
}

// Error returns the message and, behind it, the cause: for logs, not for clients.
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

// Wrap is New with a cause.
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
