package edge

import (
	"net/http"
	"time"

	"github.com/agentledger/agentledger/fault"
)

// RefuseBodies wraps next. It responds to a GET, HEAD or OPTIONS with an announced body with 413 at
// once and closes the connection, because http.Server waits for an announced body before and after the
// response. A poll whose body never arrives would hold its connection, for example. No route of these methods takes a
// body.
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

// refuseBody closes the connection after the response. Only bytes that have already arrived are read.
// It ignores the error of SetReadDeadline, because writers of tests have no deadline.
func refuseBody(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Connection", "close")
	_ = http.NewResponseController(w).SetReadDeadline(time.Now())
	return fault.New(fault.TooLarge, r.Method+" takes no body")
}
