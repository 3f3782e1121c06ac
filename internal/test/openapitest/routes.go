package openapitest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/http/edge"
)

// CheckRoutes compares the routes of a router with the operations of the traffic's tags, in both directions: paths,
// methods, credentials, query parameters and bodies. Preflight requests belong to prefixes and have no route.
func (f *Traffic) CheckRoutes(t testing.TB, routes []edge.Listed) {
	t.Helper()
	d, err := f.load()
	if err != nil {
		t.Fatalf("openapi.json: %v", err)
	}
	for _, problem := range d.checkRoutes(f.tags, routes) {
		t.Error(problem)
	}
}

// checkRoutes returns the differences between routes and the operations of some tags.
func (d *document) checkRoutes(tags []string, routes []edge.Listed) (problems []string) {
	documented := make(map[int]bool, len(routes))
	for _, p := range d.paths {
		for method, o := range p.operations {
			if method == http.MethodOptions || !slices.Contains(tags, o.tag) {
				continue
			}
			at := findRoute(routes, method, p)
			if at < 0 {
				problems = append(problems, o.id+" is documented and has no route")
				continue
			}
			documented[at] = true
			problems = append(problems, o.checkRoute(routes[at])...)
		}
	}
	for at, route := range routes {
		if !documented[at] {
			problems = append(problems, route.Method+" "+route.Pattern+" is not documented")
		}
	}
	return problems
}

// findRoute returns the index of the route of a documented path, or -1 if there is none. Of several it is the one with
// the most literal segments.
func findRoute(routes []edge.Listed, method string, p *path) int {
	best, most := -1, -1
	for i, route := range routes {
		if literals, ok := p.matchPattern(route.Pattern); ok && route.Method == method && literals > most {
			best, most = i, literals
		}
	}
	return best
}

// matchPattern reports whether a chi pattern is that of the path, and how many of its segments are literals. A * stands
// for any number of segments.
func (p *path) matchPattern(pattern string) (literals int, ok bool) {
	parts := strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	for i, part := range parts {
		switch {
		case i >= len(p.segments):
			return 0, false
		case part == "*":
			return literals, true
		case strings.HasPrefix(part, "{") != (p.segments[i].parameter != ""):
			return 0, false
		case p.segments[i].parameter == "":
			if part != p.segments[i].literal {
				return 0, false
			}
			literals++
		}
	}
	return literals, len(parts) == len(p.segments)
}

// wantedCredentials returns the kinds of credentials that a route accepts, or nil if it needs none.
func wantedCredentials(p edge.Permission) (names []string) {
	for _, c := range []edge.Credential{p.Credential, p.Or} {
		if c != edge.NoCredential {
			names = append(names, string(c))
		}
	}
	return names
}

// checkRoute returns the differences between an operation and its route.
func (o *operation) checkRoute(route edge.Listed) (problems []string) {
	optional := true // no credential is a way too
	var credentials []string
	for i, way := range o.node.member("security").items() {
		optional = optional && i > 0 || len(way.members()) == 0
		for name := range way.members() {
			credentials = append(credentials, name)
		}
	}
	want := wantedCredentials(route.Permission)
	if want == nil && !optional || want != nil && !slices.Equal(credentials, want) {
		problems = append(problems, fmt.Sprintf("%s: security is %v, the route wants %v", o.id, credentials, want))
	}
	var media []string
	for name := range o.node.member("requestBody").member("content").members() {
		media = append(media, name)
	}
	if reads := route.Body.Max > 0; reads != (len(media) > 0) || reads && !slices.Equal(media,
		[]string{route.Body.Media}) {
		problems = append(problems,
			fmt.Sprintf("%s: the body is one of %v, the route takes %q", o.id, media, route.Body.Media))
	}
	if tooLarge := o.node.member("responses").member("413").isPresent(); tooLarge != (route.Body.Max > 0) {
		problems = append(problems,
			fmt.Sprintf("%s: 413 is documented: %v, the route takes %d bytes", o.id, tooLarge, route.Body.Max))
	}
	return append(problems, o.checkQuery(route)...)
}
