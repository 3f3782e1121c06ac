package edge

import (
	"net/http"
	"slices"
	"strings"
)

// fastPath holds the routes of mode Fast. It finds a pattern without a parameter by the
// whole path, and a pattern with one by the text around the parameter. Paths with escapes
// are left to chi.
type fastPath struct {
	handlers map[fastKey]http.Handler
	prefixes []string // the texts before a parameter
}

// fastKey is a method and a pattern. Before and after are the texts around the
// parameter of the pattern; without a parameter, before is the whole pattern.
type fastKey struct{ method, before, after string }

func newFastPath() fastPath { return fastPath{handlers: make(map[fastKey]http.Handler)} }

// addRoute adds a route. Its pattern has no parameter, or one that is a whole segment.
func (f *fastPath) addRoute(method, pattern string, h http.Handler) {
	before, rest, parameter := strings.Cut(pattern, "{")
	_, after, _ := strings.Cut(rest, "}")
	if parameter && !slices.Contains(f.prefixes, before) {
		f.prefixes = append(f.prefixes, before)
	}
	f.handlers[fastKey{method, before, after}] = h
}

// findHandler returns the handler of a request, nil when chi has to look.
func (f *fastPath) findHandler(r *http.Request) http.Handler {
	if r.URL.RawPath != "" {
		return nil
	}
	path := r.URL.Path
	for _, before := range f.prefixes {
		if rest, ok := strings.CutPrefix(path, before); ok {
			if end := strings.IndexByte(rest, '/'); end > 0 {
				return f.handlers[fastKey{r.Method, before, rest[end:]}]
			}
			return nil
		}
	}
	return f.handlers[fastKey{r.Method, path, ""}]
}
