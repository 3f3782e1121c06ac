package clock

import (
	"errors"
	"time"

	"github.com/agentledger/agentledger/fault"
)

// Code is the code of what is refused because of the time.
const Code = "clock"

// RefusalPause is after what time a refused caller may try again.
const RefusalPause = 5 * time.Second

// Refusal is the answer to what needs the time while the clock is not trusted:
// fault.Unavailable with Code. reason is for the log.
func Refusal(reason string) error {
	return &fault.Error{Kind: fault.Unavailable, Code: Code, Message: "The service's clock is being checked", RetryAfter: RefusalPause, Err: errors.New(reason)}
}
