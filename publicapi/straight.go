package publicapi

import (
	"net/http"
	"strings"

	"github.com/agentledger/agentledger/id"
)

// Paths of what is known by the slug of its organization.
const (
	slugPrefix = "/v1/public/orgs/"
	slugRoute  = slugPrefix + "{slug}"
)

// Straight returns next with the hot resources answered past it: next is the router
// that Routes was called with, which costs a request about as much as a head does.
// Both ways answer the same. A path that is spelled in another way than it has to be
// goes to next.
func (s *Server) Straight(next http.Handler) http.Handler {
	hot := map[string]http.Handler{}
	for resource, get := range map[string]getter{
		"/transparency/head":        s.head,
		"/transparency/checkpoint":  s.checkpoint,
		"/transparency/inclusion":   s.inclusion,
		"/transparency/consistency": s.consistency,
	} {
		hot[resource] = shared(s.edge.HandleRoute(slugRoute+resource, func(w http.ResponseWriter, r *http.Request) error {
			slug, _ := cutSlug(r.URL.Path)
			return s.serve(w, request{Request: r, slug: slug}, get)
		}))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawPath == "" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			if slug, resource := cutSlug(r.URL.Path); slug != "" && hot[resource] != nil {
				hot[resource].ServeHTTP(w, r)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// cutSlug returns the slug that a path names, and the resource behind it with its
// slash; nothing of paths that name none.
func cutSlug(path string) (slug id.Slug, resource string) {
	if rest, ok := strings.CutPrefix(path, slugPrefix); ok {
		if end := strings.IndexByte(rest, '/'); end > 0 {
			return id.Slug(rest[:end]), rest[end:]
		}
	}
	return "", ""
}
