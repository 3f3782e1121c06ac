package granthttp

import "net/http"

// partialBody is the header by which Envoy announces a body, and whether it is cut. Envoy removes the
// client's.
const partialBody = "X-Envoy-Auth-Partial-Body"

// Authorizer returns a handler for a proxy that asks about each request before it passes the request
// on. It gets the method, the target, the headers and the body of the original request. Status 200
// permits the request and uses its grant up. So it is an HTTP service of Envoy's ext_authz filter.
//
// location, if not "", is sent as X-Accel-Redirect with each permission: a named location of nginx,
// which passes the request on.
//
// A proxy that does not send the body would get a permission that does not cover it. So of the requests
// that need a grant only GET, HEAD and DELETE may come without Envoy's header.
func (c *Checker) Authorizer(location string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		value := headerValue(r.Header, partialBody)
		bodyless := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodDelete
		if _, _, err := c.check(r, value == "false" || value == "" && bodyless); err != nil {
			err.write(w)
			return
		}
		if location != "" {
			w.Header().Set("X-Accel-Redirect", location)
		}
	})
}
