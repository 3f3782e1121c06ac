package clock

import (
	"errors"
	"time"

	"github.com/agentledger/agentledger/fault"
)

// Code is the error code of a request that is rejected because the clock is not trusted.
const Code = "clock"

// refusalPause is the time after which a client may retry.
const refusalPause = 5 * time.Second

// Refusal returns the error for a request that needs the time while the clock is not trusted: fault.Unavailable with
// Code. reason is only logged.
func Refusal(reason string) error {
	return &fault.Error{
		Kind:       fault.Unavailable,
		Code:       Code,
		Message:    "The service's clock is being checked",
		RetryAfter: refusalPause,
		Err:        errors.New(reason),
	}
}
