package header

import (
	"net/http"
	"strconv"
	"time"
)

// RetryAfter returns how long the header Retry-After of a response asks the client to wait, given in seconds or as a date.
// It returns 0 if the header is absent or malformed, or if the date is not after now. The result has no upper bound: a
// caller that does not trust the server must limit it.
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
