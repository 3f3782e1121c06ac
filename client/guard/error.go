package guard

import (
	"fmt"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

// NotDecidedError is returned by Run when no decision on an action is known, or the journal can't be written: the
// service can't be reached, its answer does not fit the request, or the disk is full. The action did not run, and
// may be tried again.
type NotDecidedError struct {
	Event id.Event // that asks for the decision
	Err   error    // the cause
}

// Error names the event and the cause, and says what to do.
func (e *NotDecidedError) Error() string {
	return fmt.Sprintf("the action did not run (event %s): %v. %s", e.Event, e.Err, Advise(e.Err))
}

// Unwrap returns the cause.
func (e *NotDecidedError) Unwrap() error { return e.Err }

// ApprovalRequiredError is returned by Run when people have not decided yet and the caller's
// context ended. The approval stays open: the same action goes on with it.
type ApprovalRequiredError struct {
	Event    id.Event
	Approval client.Approval
	Err      error // why the wait ended
}

// Error names the approval.
func (e *ApprovalRequiredError) Error() string {
	return fmt.Sprintf("the action needs the approval %s: %v", e.Approval.ID, e.Err)
}

// Unwrap returns why the wait ended.
func (e *ApprovalRequiredError) Unwrap() error { return e.Err }
