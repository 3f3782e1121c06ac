package openapitest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
)

// owned is a document with operations that name an organization, and one that names none.
const owned = `{"openapi": "3.1.0", "paths": {
  "/v1/console/things": {"post": {"tags": ["things"], "operationId": "postThing", "responses": {"200": {}}}},
  "/v1/public/did/{did}": {"get": {"tags": ["things"], "operationId": "getDid", "responses": {"200": {}}}},
  "/health": {"get": {"tags": ["things"], "operationId": "getHealth", "responses": {"200": {}}}}
}}`

// A handler must look up the owner once, before it reads the body, if an organization is named, and otherwise never.
func TestOwnership(t *testing.T) {
	ask := func(r *http.Request, tenants ...id.Tenant) {
		for _, tenant := range tenants {
			Passer{}.Owns(r.Context(), tenant)
		}
	}
	read := func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }
	passed := func(w http.ResponseWriter, r *http.Request) bool {
		if (Passer{}).Owns(r.Context(), 1) {
			return false
		}
		_, _ = Passer{}.Pass(w, r, &admission.Elsewhere{Tenant: 1})
		return true
	}
	for name, c := range map[string]struct {
		method, path string
		handle       func(http.ResponseWriter, *http.Request)
		want         []string
	}{
		"right": {"POST", "/v1/console/things", func(w http.ResponseWriter, r *http.Request) {
			if !passed(w, r) {
				read(r)
			}
		}, nil},
		"passed and handled": {"POST", "/v1/console/things", func(w http.ResponseWriter, r *http.Request) {
			passed(w, r)
			read(r)
		}, []string{"postThing read the body although another node owns the organization"}},
		"never": {"POST", "/v1/console/things", func(_ http.ResponseWriter, r *http.Request) { read(r) },
			[]string{"postThing looked up the owners [], want 1 lookups", "postThing read the body although another node owns the organization"}},
		"twice": {"POST", "/v1/console/things", func(_ http.ResponseWriter, r *http.Request) { ask(r, 1, 1) },
			[]string{"postThing looked up the owners [1 1], want 1 lookups", "postThing was passed 0 times: 200 "}},
		"late": {"POST", "/v1/console/things", func(w http.ResponseWriter, r *http.Request) {
			read(r)
			passed(w, r)
		}, []string{"postThing looked up the owner after it had begun to read the body", "postThing read the body although another node owns the organization"}},
		"several holders": {"GET", "/v1/public/did/x", func(w http.ResponseWriter, r *http.Request) {
			if !passed(w, r) {
				ask(r, 2)
			}
		}, nil},
		"one holder twice": {"GET", "/v1/public/did/x", func(w http.ResponseWriter, r *http.Request) {
			if !passed(w, r) {
				ask(r, 1)
			}
		}, []string{"getDid looked up the owners [1 1], want 1 lookups"}},
		"no lookup": {"GET", "/health", func(http.ResponseWriter, *http.Request) {}, nil},
		"needless lookup": {"GET", "/health", func(_ http.ResponseWriter, r *http.Request) { ask(r, 1) },
			[]string{"getHealth looked up the owners [1], want 0 lookups"}},
	} {
		d, err := parseDocument([]byte(owned))
		if err != nil {
			t.Fatal(err)
		}
		f := Of("things")
		f.Passer()
		r := httptest.NewRequest(c.method, c.path, strings.NewReader("text"))
		var sent strings.Builder
		is := &ownership{}
		req := r.WithContext(withOwnership(r.Context(), is))
		req.Body = tee{io.TeeReader(r.Body, &sent), r.Body}
		is.readSoFar = sent.Len
		w := httptest.NewRecorder()
		c.handle(w, req)
		x := exchange{request: r, status: w.Code}
		got := append(f.checkOwnership(d, x, is), f.checkPassing(d, x, http.HandlerFunc(c.handle))...)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", name, got, c.want)
		}
	}
}

// An operation that no test has passed on is reported.
func TestUnpassed(t *testing.T) {
	d, err := parseDocument([]byte(owned))
	if err != nil {
		t.Fatal(err)
	}
	f := Of("things")
	f.Passer()
	f.passed["postThing"] = true
	if got, want := f.listUnpassed(d), []string{"getDid on a node without the organization"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
