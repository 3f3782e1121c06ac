package edge

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/fault"
)

// Query is the query parameters of a request, each given once. A nil Query has none.
type Query struct {
	few   [fewParameters]parameter
	count int
	many  url.Values // replaces few if the query has escapes or more parameters
}

// fewParameters is the maximum number of parameters that few holds.
const fewParameters = 4

type parameter struct{ name, value string }

// Parameter returns the value of a parameter and whether it was given.
func (q *Query) Parameter(name string) (string, bool) {
	if q == nil {
		return "", false
	}
	for i := range q.count {
		if q.few[i].name == name {
			return q.few[i].value, true
		}
	}
	values := q.many[name]
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}

// Has reports whether a parameter was given.
func (q *Query) Has(name string) bool {
	_, given := q.Parameter(name)
	return given
}

// Get returns the value of a parameter, or "" if it was not given.
func (q *Query) Get(name string) string {
	value, _ := q.Parameter(name)
	return value
}

// ReadQuery returns the query parameters of a request to the route. It returns fault.Invalid, with a
// message that names the parameter, if the route does not take a parameter, or if a parameter has no
// value or is given more than once. A misspelt filter would otherwise return everything.
func (r *Route[H]) ReadQuery(request *http.Request) (*Query, error) {
	if request.URL.RawQuery == "" || r.AnyQuery {
		return nil, nil
	}
	q, err := parseQuery(request.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	return q, q.check(r.Query, false)
}

// CheckPageQuery is ReadQuery for pages. Parameters may be empty, because a browser sends every field of a
// form.
func CheckPageQuery(r *http.Request, names ...string) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	q, err := parseQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	return q.check(names, true)
}

// check returns an error if a parameter is not one of names, or if it is empty and must not be.
func (q *Query) check(names []string, mayBeEmpty bool) error {
	for i := range q.count {
		if err := checkParameter(q.few[i].name, q.few[i].value, names, mayBeEmpty); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(q.many)) {
		if err := checkParameter(name, q.many[name][0], names, mayBeEmpty); err != nil {
			return err
		}
	}
	return nil
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

// parseQuery parses a query that is not empty. It returns fault.Invalid if the query is malformed or gives
// a parameter more than once.
func parseQuery(text string) (*Query, error) {
	if q, plain := parsePlainQuery(text); plain {
		return &q, q.checkRepeated()
	}
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil, fault.New(fault.Invalid, "The query is malformed")
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if len(values[name]) > 1 {
			return nil, errRepeated(name)
		}
	}
	return &Query{many: values}, nil
}

func errRepeated(name string) error {
	return fault.New(fault.Invalid, "Query parameter "+quoteMemberName(name)+" is given more than once")
}

// parsePlainQuery parses a query without escapes and with few parameters as url.ParseQuery does, but
// without allocating.
func parsePlainQuery(text string) (q Query, plain bool) {
	if strings.ContainsAny(text, "%+;") {
		return q, false
	}
	for text != "" {
		var pair string
		pair, text, _ = strings.Cut(text, "&")
		if pair == "" {
			continue
		}
		if q.count == fewParameters {
			return q, false
		}
		name, value, _ := strings.Cut(pair, "=")
		q.few[q.count] = parameter{name, value}
		q.count++
	}
	return q, true
}

// checkRepeated returns fault.Invalid if a plain query gives a parameter more than once.
func (q *Query) checkRepeated() error {
	for i := range q.count {
		for j := range i {
			if q.few[i].name == q.few[j].name {
				return errRepeated(q.few[i].name)
			}
		}
	}
	return nil
}
