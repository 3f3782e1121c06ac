package edge

import (
	"net/http"
	"time"

	"github.com/agentledger/agentledger/fault"
)

// RefuseBodies returns next, which gets no GET, HEAD or OPTIONS that announces a body: those
// are answered 413 at once, and their connections closed. No call of those methods
// takes a body, and http.Server waits before and after the answer for one that was
// announced. Example: a poll whose body never comes would hold its connection.
func (e *Edge) RefuseBodies(next http.Handler) http.Handler {
	quiet := *e
	quiet.Quiet = true
	refuse := quiet.wrapHandler(refuseBody, newRouteMeter(e.Metrics, noRoute), nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 && methodTakesNoBody(r.Method) {
			refuse.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func methodTakesNoBody(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// refuseBody makes the connection end with the answer: nothing more is read of it than
// what is there. A writer without deadlines has none to move.
func refuseBody(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Connection", "close")
	_ = http.NewResponseController(w).SetReadDeadline(time.Now())
	return fault.New(fault.TooLarge, r.Method+" takes no body")
}
