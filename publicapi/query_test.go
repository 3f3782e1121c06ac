package publicapi

import (
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/fault"
)

// ask reads a query, with the names of the parameters that url.ParseQuery finds.
func ask(text string) (q *query, names []string, err error) {
	values, _ := url.ParseQuery(text)
	for name := range values {
		names = append(names, name)
	}
	q, err = parseQuery(&http.Request{URL: &url.URL{RawQuery: text}})
	return q, names, err
}

func TestQuery(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"log_index=7":             "",
		"log_index=7&tree_size=9": "",
		"&&a=1&&":                 "",
		"a":                       "",
		"=1":                      "",
		"a=b=c":                   "",
		"a=%31":                   "",
		"a=1+2":                   "",
		"a=1&b=2&c=3&d=4&e=5":     "",
		"a=1&a=1":                 "A query parameter is given twice",
		"a&a":                     "A query parameter is given twice",
		"a=1&%61=1":               "A query parameter is given twice",
		"a=1&b&c&d&e&a":           "A query parameter is given twice",
		"a=1;b=2":                 "The query is malformed",
		"a=%zz":                   "The query is malformed",
	} {
		_, _, err := ask(text)
		got := ""
		if err != nil {
			got = fault.Of(err).Message
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// Indices have one spelling.
func TestQueryIndex(t *testing.T) {
	for text, ok := range map[string]bool{
		"n=0": true, "n=10": true, "n=9223372036854775807": true,
		"n=": false, "n=00": false, "n=01": false, "n=%2b1": false, "n=-1": false, "n=1_0": false, "n=0x1": false,
		"n=9223372036854775808": false, "n=18446744073709551616": false, "n": false,
	} {
		q, _, err := ask(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := q.indexParameter("n", 1); (err == nil) != ok {
			t.Errorf("%q: got %v, want ok %v", text, err, ok)
		}
	}
}

// A query says what net/url says that it says.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"", "a=1&b=2", "&a&=&b==1&", "%61=1&a=2", "a;b", "a=1&b=2&c=3&d=4&e=5", "a+b=c+d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, names, err := ask(text)
		values, malformed := url.ParseQuery(text)
		twice := slices.ContainsFunc(names, func(name string) bool { return len(values[name]) > 1 })
		if (err == nil) != (malformed == nil && !twice) {
			t.Fatalf("%q: got %v; url.ParseQuery: %v, %v", text, err, values, malformed)
		}
		if err != nil {
			return
		}
		for _, name := range append(names, "absent") {
			if got, want := q.textParameter(name), values.Get(name); got != want || q.hasParameter(name) != values.Has(name) {
				t.Errorf("%q: %q: got %q, %v, want %q", text, name, got, q.hasParameter(name), want)
			}
		}
	})
}
