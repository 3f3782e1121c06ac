package header

import (
	"net/http"
	"strconv"
	"time"
)

// RetryAfter returns for how long the sender of an answer asks for no further request, by seconds
// or by a date. It is 0 without the header, for a malformed header, and when its time is
// over at now. It is not bounded: a caller that does not trust the sender MUST bound it.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
