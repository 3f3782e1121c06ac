package edge

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/fault"
)

// ReadQuery returns the query parameters of a request to the route, each with one value unless the route repeats it. It returns fault.Invalid, with a
// message that names the parameter, if the route does not take a parameter, or if a parameter has no
// value or is given more than once. A misspelt filter would otherwise return everything.
func (r *Route[H]) ReadQuery(request *http.Request) (url.Values, error) {
	if request.URL.RawQuery == "" || r.AnyQuery {
		return nil, nil
	}
	return parseQuery(request.URL.RawQuery, r.Query, r.Repeated, false)
}

// CheckPageQuery is ReadQuery for pages. Parameters may be empty, because a browser sends every field of a
// form.
func CheckPageQuery(r *http.Request, names ...string) error {
	_, err := parseQuery(r.URL.RawQuery, names, nil, true)
	return err
}

// parseQuery parses a query. It returns fault.Invalid if the query is malformed, gives a parameter more than once or one
// that is not in names, or if a parameter is empty and must not be. Of several refused parameters the message has the first
// by name.
func parseQuery(text string, names, repeated []string, mayBeEmpty bool) (url.Values, error) {
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil, fault.New(fault.Invalid, "The query is malformed")
	}
	refused := ""
	for name, given := range values {
		if e := checkParameter(name, given, names, repeated, mayBeEmpty); e != nil && (err == nil || name < refused) {
			refused, err = name, e
		}
	}
	if err != nil {
		return nil, err
	}
	return values, nil
}

func checkParameter(name string, given, names, repeated []string, mayBeEmpty bool) error {
	switch {
	case len(given) > 1 && !slices.Contains(repeated, name):
		return fault.New(fault.Invalid, "Query parameter "+quoteMemberName(name)+" is given more than once")
	case !slices.Contains(names, name):
		known := "there are none here"
		if len(names) > 0 {
			known = "known are " + strings.Join(names, ", ")
		}
		return fault.New(fault.Invalid, "Unknown query parameter "+quoteMemberName(name)+": "+known)
	case slices.Contains(given, "") && !mayBeEmpty:
		return fault.New(fault.Invalid, "Query parameter "+quoteMemberName(name)+" is empty: give it a value or leave it out")
	}
	return nil
}
