package edge

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/fault"
)

// names returns the names of the parameters that url.ParseQuery finds.
func names(text string) (all []string) {
	values, _ := url.ParseQuery(text)
	for name := range values {
		all = append(all, name)
	}
	return all
}

func TestQuery(t *testing.T) {
	route := Route[Handler]{Query: []string{"a", "b", "limit", "tree_size", "k5"}, Repeated: []string{"b"}}
	for text, want := range map[string]string{
		"":                                 "",
		"limit=7":                          "",
		"limit=7&tree_size=9":              "",
		"&&a=1&&":                          "",
		"a=b=c":                            "",
		"a=%31":                            "",
		"a=1+2":                            "",
		"a=1&b=2&limit=3&tree_size=4&k5=5": "",
		"a":                                `Query parameter "a" is empty: give it a value or leave it out`,
		"b=1&a=":                           `Query parameter "a" is empty: give it a value or leave it out`,
		"a=&b=%31":                         `Query parameter "a" is empty: give it a value or leave it out`,
		"=1":                               `Unknown query parameter "": known are a, b, limit, tree_size, k5`,
		"limti=1":                          `Unknown query parameter "limti": known are a, b, limit, tree_size, k5`,
		"a=%31&A=1":                        `Unknown query parameter "A": known are a, b, limit, tree_size, k5`,
		"a%00=1":                           `Unknown query parameter "a\x00": known are a, b, limit, tree_size, k5`,
		"a=1&a=1":                          `Query parameter "a" is given more than once`,
		"a&a":                              `Query parameter "a" is given more than once`,
		"x=1&x=2":                          `Query parameter "x" is given more than once`,
		"a=1&%61=1":                        `Query parameter "a" is given more than once`,
		"a=1&b=1&limit&k5&tree_size&a":     `Query parameter "a" is given more than once`,
		"b=1&b=2&b=3":                      "",
		"b=1&b=":                           `Query parameter "b" is empty: give it a value or leave it out`,
		"a=1;b=2":                          "The query is malformed",
		"a=%zz":                            "The query is malformed",
	} {
		_, err := route.ReadQuery(&http.Request{URL: &url.URL{RawQuery: text}})
		got := ""
		if err != nil {
			got = fault.Of(err).Message
		}
		if got != want || err != nil && fault.Of(err).Kind != fault.Invalid {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	for text, ok := range map[string]bool{"a=&b=1": true, "a": true, "c=": false, "a=1&a=2": false, "a=;": false} {
		if err := CheckPageQuery(&http.Request{URL: &url.URL{RawQuery: text}}, "a", "b"); (err == nil) != ok {
			t.Errorf("page %q: got %v, want ok %v", text, err, ok)
		}
	}
}

// The router refuses wrong parameters before it calls the handler of a route, in every mode.
func TestRouterChecksQueries(t *testing.T) {
	var table Table[Handler]
	handle := func(w http.ResponseWriter, _ *http.Request) error {
		WriteNoContent(w)
		return nil
	}
	table.Add("GET", "/none", Permission{}, Body{}, handle)
	table.Add("GET", "/list", Permission{}, Body{}, handle, InPlace).TakesPage()
	table.Add("POST", "/fast", Permission{}, Body{}, handle, Fast).Takes("a")
	table.Add("GET", "/any", Permission{}, Body{}, handle).TakesAnyQuery()
	r := (&Edge{}).Router()
	Mount(r, PlainSurface(&Edge{}), table)
	for _, c := range []struct {
		method, target string
		status         int
	}{
		{"GET", "/none", 204}, {"GET", "/none?", 204}, {"GET", "/none?a=1", 422}, {"GET", "/list?after=x&limit=1", 204},
		{"GET", "/list?aftr=x", 422}, {"GET", "/list?limit=", 422}, {"GET", "/list?limit=1&limit=1", 422},
		{"POST", "/fast?a=1", 204}, {"POST", "/fast?b=1", 422}, {"GET", "/any?x=&x=1", 204},
	} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(c.method, c.target, nil))
		if w.Code != c.status {
			t.Errorf("%s %s: got %d, want %d", c.method, c.target, w.Code, c.status)
		}
	}
}

// A query is accepted if url.ParseQuery accepts it and each parameter is known and has one value.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"", "a=1&b=2", "&a&=&b==1&", "%61=1&a=2", "a;b", "a=1&b=2&c=3&d=4&e=5", "a+b=c+d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		values, malformed := url.ParseQuery(text)
		given := names(text)
		twice := slices.ContainsFunc(given, func(name string) bool { return len(values[name]) > 1 })
		empty := slices.ContainsFunc(given, func(name string) bool { return values.Get(name) == "" })
		for _, c := range []struct {
			known      []string
			mayBeEmpty bool
			accepted   bool
		}{
			{given, true, malformed == nil && !twice},
			{given, false, malformed == nil && !twice && !empty},
			{nil, true, malformed == nil && len(given) == 0},
		} {
			if got, err := parseQuery(text, c.known, nil, c.mayBeEmpty); (err == nil) != c.accepted || err == nil && got.Encode() != values.Encode() {
				t.Errorf("%q with %q: got %v, %v, want accepted: %v", text, c.known, got, err, c.accepted)
			}
		}
	})
}
