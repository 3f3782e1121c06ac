package edge

import (
	"net/http"
	"time"

	"github.com/agentledger/agentledger/fault"
)

// RefuseBodies wraps next. A GET, HEAD or OPTIONS that announces a body is answered 413 at
// once, and its connection is closed, because http.Server waits before and after the
// answer for a body that was announced. For example, a poll whose body never comes would
// hold its connection. No route of those methods takes a body.
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

// refuseBody ends the connection with the answer: only bytes that have arrived are read.
// The error of SetReadDeadline is ignored, because a writer of a test has no deadline.
func refuseBody(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Connection", "close")
	_ = http.NewResponseController(w).SetReadDeadline(time.Now())
	return fault.New(fault.TooLarge, r.Method+" takes no body")
}
