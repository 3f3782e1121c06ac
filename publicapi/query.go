package publicapi

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// query is the parameters of a request, each at most once.
type query struct {
	few   [fewParameters]parameter
	count int
	many  url.Values // of a query that is not plain, in place of the others
}

// fewParameters is how many parameters the longest plain query has.
const fewParameters = 4

type parameter struct{ name, value string }

// parseQuery returns the parameters of a request.
func parseQuery(r *http.Request) (*query, error) {
	if q, plain := plainQuery(r.URL.RawQuery); plain {
		return &q, q.checkRepeated()
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fault.New(fault.Invalid, "The query is malformed")
	}
	for _, v := range values {
		if len(v) > 1 {
			return nil, errTwice()
		}
	}
	return &query{many: values}, nil
}

func errTwice() error { return fault.New(fault.Invalid, "A query parameter is given twice") }

// plainQuery splits a query without escapes and of few parameters, as url.ParseQuery
// would, into pieces of its own text.
func plainQuery(text string) (q query, plain bool) {
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

// checkRepeated refuses a plain query that gives a parameter twice.
func (q *query) checkRepeated() error {
	for i := range q.count {
		for j := range i {
			if q.few[i].name == q.few[j].name {
				return errTwice()
			}
		}
	}
	return nil
}

// parameter returns a parameter and whether it is there. A nil query has none.
func (q *query) parameter(name string) (string, bool) {
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

func (q *query) hasParameter(name string) bool {
	_, there := q.parameter(name)
	return there
}

func (q *query) textParameter(name string) string {
	value, _ := q.parameter(name)
	return value
}

// indexParameter reads a log index or tree size: decimal digits without leading zeros.
func (q *query) indexParameter(name string, absent id.Index) (id.Index, error) {
	text, there := q.parameter(name)
	if !there {
		return absent, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || id.Index(n) > tlog.MaxSize || len(text) > 1 && text[0] == '0' {
		return 0, fault.New(fault.Invalid, name+" must be a whole number in decimal digits")
	}
	return id.Index(n), nil
}
