package edge

import (
	"net/http"
	"strconv"
	"time"

	"github.com/agentledger/agentledger/fault"
)

// maxWait is how long a long poll may last.
const maxWait = 30 * time.Second

// answerTime is how long the answer of a long poll may take when the wait is over.
const answerTime = 15 * time.Second

// ParseWait reads ?wait=, whole seconds, 0 without it.
func ParseWait(r *http.Request) (time.Duration, error) {
	query := r.URL.Query()
	if !query.Has("wait") {
		return 0, nil
	}
	n, err := strconv.ParseUint(query.Get("wait"), 10, 8)
	if wait := time.Duration(n) * time.Second; err == nil && wait <= maxWait {
		return wait, nil
	}
	return 0, fault.New(fault.Invalid, "wait must be a whole number of seconds from 0 to 30")
}

// LongestWait returns for how long a request may wait, 0 when it does not say so in the
// right form. It is the Wait of surfaces whose handlers use ParseWait.
func LongestWait(r *http.Request) time.Duration {
	wait, _ := ParseWait(r)
	return wait
}

// ExtendDeadlines moves the time-outs of the server, which are for those that work, for a
// request that waits. A writer without deadlines has none to move.
func ExtendDeadlines(w http.ResponseWriter, wait time.Duration) {
	if wait == 0 {
		return
	}
	c := http.NewResponseController(w)
	end := time.Now().Add(wait + answerTime)
	_ = c.SetReadDeadline(end)
	_ = c.SetWriteDeadline(end)
}
