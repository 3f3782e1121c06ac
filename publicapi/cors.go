package publicapi

import "net/http"

// preflightAge is how long, in seconds, a browser may cache the response to a preflight request.
const preflightAge = "86400"

// allowAllOrigins allows pages of every origin to read all responses (CORS), including
// errors, and answers preflight requests.
func allowAllOrigins(next http.Handler) http.Handler {
	anyOrigin, nosniff, exposed := []string{"*"}, []string{"nosniff"},
		[]string{"ETag, X-Request-Id"} // shared by all responses, never modified
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["Access-Control-Allow-Origin"] = anyOrigin
		h["X-Content-Type-Options"] = nosniff
		if r.Method != http.MethodOptions {
			h["Access-Control-Expose-Headers"] = exposed
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Allow", "GET, HEAD, OPTIONS")
		h.Set("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
		h.Set("Access-Control-Allow-Headers", "Accept, If-None-Match")
		h.Set("Access-Control-Max-Age", preflightAge)
		w.WriteHeader(http.StatusNoContent)
	})
}
