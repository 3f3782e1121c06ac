package openapitest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/http/edge"
)

// queryParameters returns the names of the documented query parameters, sorted.
func (o *operation) queryParameters() (names []string) {
	for _, p := range o.parameters {
		if p.member("in").text() == "query" {
			names = append(names, p.member("name").text())
		}
	}
	slices.Sort(names)
	return names
}

// checkQuery returns the differences between the query parameters of an operation and of its route.
func (o *operation) checkQuery(route edge.Listed) []string {
	if route.AnyQuery {
		return nil
	}
	taken, documented := slices.Sorted(slices.Values(route.Query)), o.queryParameters()
	if !slices.Equal(taken, documented) {
		return []string{fmt.Sprintf("%s: documented query parameters are %v, the route takes %v", o.id, documented, taken)}
	}
	for _, p := range o.parameters {
		name, isArray := p.member("name").text(), p.schemaOf().member("type").text() == "array"
		if slices.Contains(route.Repeated, name) != isArray {
			return []string{o.id + ": " + name + " is documented as an array, or may be given more than once, but not both"}
		}
	}
	if status := o.invalidStatus(); !o.node.member("responses").member(status).isPresent() {
		return []string{o.id + ": " + status + " is not documented"}
	}
	return nil
}

// invalidStatus returns the status of invalid requests: 422, or 400 for the operations of a protocol that demands it.
func (o *operation) invalidStatus() string {
	if o.node.member("responses").member("400").isPresent() {
		return "400"
	}
	return "422"
}

// CheckQueries sends wrong query parameters to every route of the traffic's tags: an unknown one, and each that the
// route takes, both empty and, unless it may be repeated, twice. The answer must be 422, or 400 where an operation documents that, and
// name the parameter. Pages accept empty parameters,
// because browsers send the empty fields of forms.
func (f *Traffic) CheckQueries(t *testing.T, routes []edge.Listed, h http.Handler) {
	t.Helper()
	d, err := f.load()
	if err != nil {
		t.Fatalf("openapi.json: %v", err)
	}
	for _, p := range d.paths {
		for method, o := range p.operations {
			at := findRoute(routes, method, p)
			if method == http.MethodOptions || at < 0 || !slices.Contains(f.tags, o.tag) || routes[at].AnyQuery {
				continue
			}
			queries := map[string]string{"surplus=1": "surplus"}
			for _, name := range o.queryParameters() {
				if !slices.Contains(routes[at].Repeated, name) {
					queries[name+"=1&"+name+"=1"] = name
				}
				if o.tag != "pages" {
					queries[name+"="] = name
				}
			}
			for query, name := range queries {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(method, p.example()+"?"+query, nil))
				if named := method == http.MethodHead || strings.Contains(w.Body.String(), name); strconv.Itoa(w.Code) != o.invalidStatus() || !named {
					t.Errorf("%s with %s: got %d %.200s, want %s with the name", o.id, query, w.Code, w.Body, o.invalidStatus())
				}
			}
		}
	}
}

// example returns a path that matches a template.
func (p *path) example() string {
	var b strings.Builder
	for _, s := range p.segments {
		b.WriteByte('/')
		if s.parameter != "" {
			b.WriteByte('7')
		} else {
			b.WriteString(s.literal)
		}
	}
	return b.String()
}
