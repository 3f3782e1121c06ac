package sysevent

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/log"
)

// outcomeKey is the key of WithOutcome's value.
type outcomeKey struct{}

// WithOutcome returns a context for a call, and a function that must be given the error of the call. log.ErrNotOwner
// means that nothing was done, which is wrong if a statement of the call has been committed. In that case, the function
// returns fault.OutcomeUnknown, and otherwise the given error.
func WithOutcome(ctx context.Context) (call context.Context, check func(error) error) {
	stated := new(atomic.Bool)
	return context.WithValue(ctx, outcomeKey{}, stated), func(err error) error {
		if stated.Load() && errors.Is(err, log.ErrNotOwner) {
			return errOutcome("The change was made, but could not be read back: check before you retry", err)
		}
		return err
	}
}

// noteStatement records that a statement of a call has been committed.
func noteStatement(ctx context.Context) {
	if stated, ok := ctx.Value(outcomeKey{}).(*atomic.Bool); ok {
		stated.Store(true)
	}
}

func errOutcome(message string, cause error) error {
	return &fault.Error{Kind: fault.OutcomeUnknown, Code: "outcome_unknown", Message: message, Err: cause}
}
