package edge

import (
	"net/http"
	"strconv"
	"time"

	"github.com/agentledger/agentledger/fault"
)

// maxWait is the maximum wait of a long poll.
const maxWait = 30 * time.Second

// answerTime bounds the response of a long poll after its wait.
const answerTime = 15 * time.Second

// ParseWait returns ?wait= in whole seconds, or 0 if it is absent.
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

// LongestWait returns how long a request may wait, or 0 if its wait is absent or malformed. It is the Wait of surfaces
// whose handlers use ParseWait.
func LongestWait(r *http.Request) time.Duration {
	wait, _ := ParseWait(r)
	return wait
}

// ExtendDeadlines extends the server's timeouts for a request that waits. It ignores writers without deadlines.
func ExtendDeadlines(w http.ResponseWriter, wait time.Duration) {
	if wait == 0 {
		return
	}
	c := http.NewResponseController(w)
	end := time.Now().Add(wait + answerTime)
	_ = c.SetReadDeadline(end)
	_ = c.SetWriteDeadline(end)
}
