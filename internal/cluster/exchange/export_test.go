package exchange

import "time"

// Hurry shortens the times of calls.
func (x *Exchange) Hurry(call, fetch time.Duration) { x.callTime, x.fetchTime = call, fetch }
