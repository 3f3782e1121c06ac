package guard

import (
	"fmt"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

// NotDecidedError is returned by Run if no decision on an action is known, or if the journal cannot
// be written: the service is unreachable, its answer does not match the request, or the disk is
// full. The action did not run and may be retried.
type NotDecidedError struct {
	Event id.Event // the event that asks for the decision
	Err   error    // the cause
}

// Error returns the event ID, the cause and advice.
func (e *NotDecidedError) Error() string {
	return fmt.Sprintf("the action did not run (event %s): %v. %s", e.Event, e.Err, Advise(e.Err))
}

// Unwrap returns the cause.
func (e *NotDecidedError) Unwrap() error { return e.Err }

// ApprovalRequiredError is returned by Run if the caller's context ended before approvers decided.
// The approval stays open: the same action continues with it.
type ApprovalRequiredError struct {
	Event    id.Event
	Approval client.Approval
	Err      error // why the wait ended
}

// Error returns the approval ID and the cause.
func (e *ApprovalRequiredError) Error() string {
	return fmt.Sprintf("the action needs the approval %s: %v", e.Approval.ID, e.Err)
}

// Unwrap returns why the wait ended.
func (e *ApprovalRequiredError) Unwrap() error { return e.Err }
