package clock

import (
	"errors"
	"time"

	"github.com/agentledger/agentledger/fault"
)

// Code is the error code of a request that is refused because of the time.
const Code = "clock"

// RefusalPause is the time after which a refused caller may try again.
const RefusalPause = 5 * time.Second

// Refusal is the answer to a request that needs the time while the clock is not trusted:
// fault.Unavailable with Code. reason is for the log.
func Refusal(reason string) error {
	return &fault.Error{
		Kind:       fault.Unavailable,
		Code:       Code,
		Message:    "The service's clock is being checked",
		RetryAfter: RefusalPause,
		Err:        errors.New(reason),
	}
}
