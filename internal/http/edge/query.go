package edge

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/fault"
)

// ReadQuery returns the query parameters of a request to the route, each with one value. It returns fault.Invalid, with a
// message that names the parameter, if the route does not take a parameter, or if a parameter has no
// value or is given more than once. A misspelt filter would otherwise return everything.
func (r *Route[H]) ReadQuery(request *http.Request) (url.Values, error) {
	if request.URL.RawQuery == "" || r.AnyQuery {
		return nil, nil
	}
	return parseQuery(request.URL.RawQuery, r.Query, false)
}

// CheckPageQuery is ReadQuery for pages. Parameters may be empty, because a browser sends every field of a
// form.
func CheckPageQuery(r *http.Request, names ...string) error {
	_, err := parseQuery(r.URL.RawQuery, names, true)
	return err
}

// parseQuery parses a query. It returns fault.Invalid if the query is malformed, gives a parameter more than once or one
// that is not in names, or if a parameter is empty and must not be.
func parseQuery(text string, names []string, mayBeEmpty bool) (url.Values, error) {
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil, fault.New(fault.Invalid, "The query is malformed")
	}
	sorted := slices.Sorted(maps.Keys(values))
	for _, name := range sorted {
		if len(values[name]) > 1 {
			return nil, fault.New(fault.Invalid, "Query parameter "+quoteMemberName(name)+" is given more than once")
		}
	}
	for _, name := range sorted {
		if err := checkParameter(name, values.Get(name), names, mayBeEmpty); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func checkParameter(name, value string, names []string, mayBeEmpty bool) error {
	if !slices.Contains(names, name) {
		known := "there are none here"
		if len(names) > 0 {
			known = "known are " + strings.Join(names, ", ")
		}
		return fault.New(fault.Invalid, "Unknown query parameter "+quoteMemberName(name)+": "+known)
	}
	if value == "" && !mayBeEmpty {
		return fault.New(fault.Invalid, "Query parameter "+quoteMemberName(name)+" is empty: give it a value or leave it out")
	}
	return nil
}
