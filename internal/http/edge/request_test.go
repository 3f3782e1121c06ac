package edge_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/internal/http/edge"
)

func TestPathParameter(t *testing.T) {
	var got string
	r := chi.NewRouter()
	r.Get("/things/{thing}", func(_ http.ResponseWriter, r *http.Request) { got = edge.PathParameter(r, "thing") })
	for path, want := range map[string]string{
		"/things/a":     "a",
		"/things/a%20b": "a b",
		"/things/a%2Fb": "a/b",
		"/things/%61":   "a",
		"/things/%2561": "%61",
	} {
		r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
		if got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

func TestMatchesTag(t *testing.T) {
	for _, tt := range []struct {
		values []string
		want   bool
	}{
		{nil, false},
		{[]string{`"a"`}, true},
		{[]string{`W/"a"`}, true},
		{[]string{`"b", "a"`}, true},
		{[]string{`"b"`, `"a"`}, true},
		{[]string{"*"}, true},
		{[]string{`"b"`}, false},
		{[]string{`a`}, false},
		{[]string{`"a`, `aa"`}, false},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["If-None-Match"] = tt.values
		if got := edge.MatchesTag(r, `"a"`); got != tt.want {
			t.Errorf("%q: got %v", tt.values, got)
		}
	}
}
