package edge

import (
	"net/http"
	"slices"
	"strings"
)

// fastPath contains the routes of mode Fast. It finds a pattern without a parameter by the
// whole path, and a pattern with one by the text around the parameter. A pattern may end with
// a wildcard. chi handles paths with escapes.
type fastPath struct {
	handlers map[fastKey]http.Handler
	prefixes []string // the texts before a parameter
	tails    []string // the texts between a parameter and a wildcard, longest first
}

// fastKey is a method and a pattern. Before and after are the texts around the
// parameter of the pattern; without a parameter, before is the whole pattern.
type fastKey struct{ method, before, after string }

func newFastPath() fastPath { return fastPath{handlers: make(map[fastKey]http.Handler)} }

// addRoute adds a route. Its pattern must have at most one parameter, which is a whole segment, and at most one wildcard,
// at its end and after the parameter.
func (f *fastPath) addRoute(method, pattern string, h http.Handler) {
	before, rest, parameter := strings.Cut(pattern, "{")
	_, after, _ := strings.Cut(rest, "}")
	if parameter && !slices.Contains(f.prefixes, before) {
		f.prefixes = append(f.prefixes, before)
	}
	if tail, ok := strings.CutSuffix(after, "*"); ok {
		f.addTail(tail)
	}
	f.handlers[fastKey{method, before, after}] = h
}

// addTail adds the text before a wildcard. Like chi, the longest one matches first.
func (f *fastPath) addTail(tail string) {
	if !slices.Contains(f.tails, tail) {
		f.tails = append(f.tails, tail)
		slices.SortFunc(f.tails, func(a, b string) int { return len(b) - len(a) })
	}
}

// findHandler returns the handler of a request, or nil if chi must look it up.
func (f *fastPath) findHandler(r *http.Request) http.Handler {
	if r.URL.RawPath != "" {
		return nil
	}
	path := r.URL.Path
	for _, before := range f.prefixes {
		if rest, ok := strings.CutPrefix(path, before); ok {
			if end := strings.IndexByte(rest, '/'); end > 0 {
				return f.findBehind(r.Method, before, rest[end:])
			}
			return nil
		}
	}
	return f.handlers[fastKey{r.Method, path, ""}]
}

// findBehind finds the handler by the path after its parameter.
func (f *fastPath) findBehind(method, before, after string) http.Handler {
	for _, tail := range f.tails {
		if strings.HasPrefix(after, tail) {
			return f.handlers[fastKey{method, before, tail + "*"}]
		}
	}
	return f.handlers[fastKey{method, before, after}]
}
