package edge

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/fault"
)

// methods returns those that a route may have, in the order of the Allow header.
func methods() [7]string {
	return [...]string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut,
		http.MethodPatch, http.MethodDelete, http.MethodOptions,
	}
}

// noRoute stands in metrics for what no route was found for.
const noRoute = "none"

// Router returns a router that answers unknown routes with 404 and unknown
// methods with 405 and Allow, both by e, quietly. Routers mounted below it inherit
// that.
func (e *Edge) Router() *chi.Mux {
	quiet := *e
	quiet.Quiet = true
	m := chi.NewMux()
	m.NotFound(quiet.handle(notFound, &meter{metrics: e.Metrics, label: noRoute}).ServeHTTP)
	m.MethodNotAllowed(quiet.handle(methodNotAllowed, &meter{metrics: e.Metrics, label: noRoute}).ServeHTTP)
	return m
}

func notFound(http.ResponseWriter, *http.Request) error {
	return fault.New(fault.NotFound, "Not found")
}

func methodNotAllowed(w http.ResponseWriter, r *http.Request) error {
	found := allowed(r)
	if len(found) == 0 { // a method that HTTP does not define, and no route either
		return notFound(w, r)
	}
	w.Header().Set("Allow", strings.Join(found, ", "))
	return WriteJSON(w, http.StatusMethodNotAllowed, Body{Error: "Method not allowed"})
}

// allowed returns the methods that the path of r has a route for.
func allowed(r *http.Request) []string {
	routes := chi.RouteContext(r.Context()).Routes
	path := r.URL.RawPath
	if path == "" {
		path = r.URL.Path
	}
	var found []string
	for _, m := range methods() {
		if routes.Match(chi.NewRouteContext(), m, path) {
			found = append(found, m)
		}
	}
	return found
}
