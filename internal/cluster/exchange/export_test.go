package exchange

import "time"

// Hurry shortens the time limits of calls.
func (x *Exchange) Hurry(call, fetch time.Duration) { x.callTime, x.fetchTime = call, fetch }
