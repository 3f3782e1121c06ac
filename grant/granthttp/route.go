package granthttp

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agentledger/agentledger/event"
)

// route is a compiled Route.
type route struct {
	Route
	method   string
	anyPath  bool
	segments []string // literal, or {name}
}

// parameter is a segment of a path.
type parameter struct{ name, value string }

var (
	methodForm  = regexp.MustCompile(`^[A-Z]{1,32}$`)
	literalForm = regexp.MustCompile(`^[A-Za-z0-9._~@-]+$`)
	nameForm    = regexp.MustCompile(`^\{[A-Za-z_][A-Za-z0-9_]{0,63}\}$`)
	valueForm   = regexp.MustCompile(`^([A-Za-z0-9._~:@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+$`)
)

func parseRoute(text string) (r route, err error) {
	method, path, _ := strings.Cut(text, " ")
	r.method = method
	if !methodForm.MatchString(method) {
		return r, fmt.Errorf("route %q: must be a method, a space and a path", text)
	}
	if path == "*" {
		r.anyPath = true
		return r, nil
	}
	if !strings.HasPrefix(path, "/") {
		return r, fmt.Errorf("route %q: the path must be * or begin with /", text)
	}
	r.segments = strings.Split(path[1:], "/")
	for i, s := range r.segments {
		switch {
		case path == "/":
		case nameForm.MatchString(s):
			if slices.Contains(r.segments[:i], s) || slices.Contains(event.GuardMembers(), s[1:len(s)-1]) {
				return r, fmt.Errorf("route %q: the parameter %s is there twice or has a reserved name", text, s)
			}
		case !literalForm.MatchString(s), s == ".", s == "..":
			return r, fmt.Errorf("route %q: a segment must be {name} or of letters, digits and ._~@-", text)
		}
	}
	return r, nil
}

func (r route) hasParameters() bool {
	return slices.ContainsFunc(r.segments, func(s string) bool { return strings.HasPrefix(s, "{") })
}

// compileRoutes checks that nothing that is declared can be reached as an open request in another
// spelling. So a method with tools is open only at paths without parameters, and HEAD counts as GET.
func compileRoutes(c Config) (routes, open []route, err error) {
	if len(c.Routes) == 0 || len(c.Routes) > maxRoutes || len(c.Open) > maxRoutes {
		return nil, nil, fmt.Errorf("routes: 1 to %d are needed, and at most as many open ones", maxRoutes)
	}
	guarded := map[string]bool{}
	for _, declared := range c.Routes {
		r, err := parseRoute(declared.Route)
		if err != nil {
			return nil, nil, err
		}
		r.Route = declared
		switch {
		case (r.Tool == "") == (r.Host == ""):
			err = errors.New("set either the tool or the host")
		case r.Tool != "" && !event.ValidTool(string(r.Tool)):
			err = errors.New("not the name of a tool")
		case r.Host != "" && r.Describe != nil:
			err = errors.New("a host goes without a description")
		case r.Tool != "" && r.anyPath && r.Describe == nil:
			err = errors.New("a tool without a description needs a path")
		}
		if err != nil {
			return nil, nil, fmt.Errorf("route %q: %w", declared.Route, err)
		}
		guarded[asGet(r.method)] = true
		routes = append(routes, r)
	}
	for _, text := range c.Open {
		r, err := parseRoute(text)
		if err != nil {
			return nil, nil, fmt.Errorf("open %w", err)
		}
		if r.hasParameters() || r.anyPath && guarded[asGet(r.method)] {
			return nil, nil, fmt.Errorf("open route %q: must be a path without parameters, or * for a method without tools", text)
		}
		open = append(open, r)
	}
	return routes, open, nil
}

// asGet returns GET for HEAD, because servers answer HEAD by the handler of GET.
func asGet(method string) string {
	if method == http.MethodHead {
		return http.MethodGet
	}
	return method
}

// match returns the first route of a request, or nil. path is as it was sent.
func match(routes []route, method, path string) (*route, []parameter) {
	segments := strings.Split(path[1:], "/")
	for i := range routes {
		if parameters, ok := routes[i].match(method, segments); ok {
			return &routes[i], parameters
		}
	}
	return nil, nil
}

func (r *route) match(method string, segments []string) (parameters []parameter, ok bool) {
	if r.method != method || !r.anyPath && len(r.segments) != len(segments) {
		return nil, false
	}
	for i, want := range r.segments {
		if !strings.HasPrefix(want, "{") {
			if want != segments[i] {
				return nil, false
			}
			continue
		}
		value, ok := segmentValue(segments[i])
		if !ok {
			return nil, false
		}
		parameters = append(parameters, parameter{want[1 : len(want)-1], value})
	}
	return parameters, true
}

// segmentValue decodes a segment. Values that servers read in different ways are refused: a slash, a
// backslash, a control character, . and .. .
func segmentValue(segment string) (string, bool) {
	if !valueForm.MatchString(segment) {
		return "", false
	}
	value, err := url.PathUnescape(segment)
	if err != nil || !utf8.ValidString(value) || value == "." || value == ".." {
		return "", false
	}
	return value, !strings.ContainsFunc(value, func(c rune) bool { return c == '/' || c == '\\' || c < ' ' || c == 0x7f })
}
