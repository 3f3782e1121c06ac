package edge

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"
)

// PathParameter returns a parameter of the path, decoded, or "" if the route has no such parameter. The router matches the
// escaped path if its escapes differ from those that net/url would choose, and its parameters are still escaped then.
func PathParameter(r *http.Request, name string) string {
	value := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return value
	}
	if decoded, err := url.PathUnescape(value); err == nil {
		return decoded
	}
	return ""
}

// MatchesTag reports whether If-None-Match contains an entity tag or "*". The comparison is weak (RFC 9110 section
// 13.1.2), so the prefix W/ is ignored. The tag must not contain a comma.
func MatchesTag(r *http.Request, etag string) bool {
	for _, value := range r.Header["If-None-Match"] {
		for tag := range strings.SplitSeq(value, ",") {
			tag = strings.TrimSpace(tag)
			if tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
				return true
			}
		}
	}
	return false
}
