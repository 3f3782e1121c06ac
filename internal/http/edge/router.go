package edge

import (
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/header"
)

// listMethods returns the methods that a route may have, in the order of the Allow header.
func listMethods() [7]string {
	return [...]string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut,
		http.MethodPatch, http.MethodDelete, http.MethodOptions,
	}
}

// noRoute is the route in metrics and logs of a request without a route.
const noRoute = "none"

// Router finds the handler of a request in the tables of the surfaces. It responds to unknown paths
// with 404 and to unknown methods with 405 and Allow. Mount adds the routes before use.
type Router struct {
	*chi.Mux
	fast   fastPath
	listed []Listed
}

// Router returns an empty router, which writes its own responses with e.
func (e *Edge) Router() *Router {
	quiet := *e
	quiet.Quiet = true
	r := &Router{Mux: chi.NewMux(), fast: newFastPath()}
	r.NotFound(quiet.wrapHandler(refuseUnknown, newRouteMeter(e.Metrics, noRoute), nil).ServeHTTP)
	r.MethodNotAllowed(quiet.wrapHandler(refuseMethod, newRouteMeter(e.Metrics, noRoute), nil).ServeHTTP)
	return r
}

// AnswerUnknown serves GET and HEAD requests without a route with h if the client prefers its media type to JSON.
func (r *Router) AnswerUnknown(e *Edge, media string, h Handler) {
	quiet := *e
	quiet.Quiet = true
	r.NotFound(quiet.wrapHandler(func(w http.ResponseWriter, q *http.Request) error {
		w.Header().Set("Vary", "Accept")
		reads := q.Method == http.MethodGet || q.Method == http.MethodHead
		if !reads || header.PreferredMedia(q.Header.Values("Accept"), "application/json", media) != media {
			return refuseUnknown(w, q)
		}
		return h(w, q)
	}, newRouteMeter(e.Metrics, noRoute), nil).ServeHTTP)
}

// Mount adds the routes of a table.
func Mount[H any](r *Router, s Surface[H], table Table[H]) {
	if len(s.Prefixes) == 0 {
		mountBelow(r, r.Mux, s, "", table)
	}
	for _, prefix := range s.Prefixes {
		r.Mux.Route(prefix, func(below chi.Router) {
			below.Use(s.Around)
			mountBelow(r, below, s, prefix, table)
		})
	}
}

// mountBelow adds the routes of a table whose patterns begin with prefix to the
// router of that prefix.
func mountBelow[H any](r *Router, below chi.Router, s Surface[H], prefix string, table Table[H]) {
	for i := range table {
		route := &table[i]
		pattern, ok := strings.CutPrefix(route.Pattern, prefix)
		if !ok {
			continue
		}
		serve := s.Serve(route)
		if !s.ReadsQuery {
			serve = withCheckedQuery(route, serve)
		}
		handler := s.Edge.serveRoute(route.Pattern, route.Mode, s.Wait, serve)
		for _, method := range route.Methods() {
			below.Method(method, pattern, handler)
			if !s.Unlisted {
				r.listed = append(r.listed, Listed{method, route.Pattern, route.Permission, route.Body, route.Query,
					route.Repeated, route.AnyQuery})
			}
			if route.Mode == Fast {
				r.fast.addRoute(method, route.Pattern, wrapAround(s.Around, handler))
			}
		}
	}
}

// withCheckedQuery returns a handler that rejects wrong query parameters before it calls h.
func withCheckedQuery[H any](route *Route[H], h Handler) Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if _, err := route.ReadQuery(r); err != nil {
			return err
		}
		return h(w, r)
	}
}

func wrapAround(around func(http.Handler) http.Handler, h http.Handler) http.Handler {
	if around == nil {
		return h
	}
	return around(h)
}

// List returns the routes in the OpenAPI document, once per method.
func (r *Router) List() []Listed { return slices.Clone(r.listed) }

// WithoutFastPath returns the router without the table of Fast routes. Tests
// compare both.
func (r *Router) WithoutFastPath() http.Handler { return r.Mux }

// ServeHTTP implements http.Handler.
func (r *Router) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if h := r.fast.findHandler(q); h != nil {
		h.ServeHTTP(w, q)
		return
	}
	r.Mux.ServeHTTP(w, q)
}

func refuseUnknown(http.ResponseWriter, *http.Request) error {
	return fault.New(fault.NotFound, "Not found")
}

func refuseMethod(w http.ResponseWriter, r *http.Request) error {
	found := allowedMethods(r)
	if len(found) == 0 { // a method that HTTP does not define, and no route
		return refuseUnknown(w, r)
	}
	w.Header().Set("Allow", strings.Join(found, ", "))
	return WriteJSON(w, http.StatusMethodNotAllowed, ErrorBody{Error: "Method not allowed"})
}

// allowedMethods returns the methods of the routes that match the path of r.
func allowedMethods(r *http.Request) []string {
	routes := chi.RouteContext(r.Context()).Routes
	path := r.URL.RawPath
	if path == "" {
		path = r.URL.Path
	}
	var found []string
	for _, m := range listMethods() {
		if routes.Match(chi.NewRouteContext(), m, path) {
			found = append(found, m)
		}
	}
	return found
}
