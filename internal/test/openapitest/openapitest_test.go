package openapitest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/http/edge"
)

// small is a document with one of everything that is checked.
const small = `{
  "openapi": "3.1.0",
  "x-unmatched": {"responses": {
    "404": {"headers": {}, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
    "405": {"headers": {"Allow": {"required": true, "schema": {"type": "string"}}}}
  }},
  "paths": {
    "/things/{id}": {
      "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string", "pattern": "^[a-z]+$"}}],
      "put": {
        "tags": ["things"], "operationId": "putThing", "security": [{"key": []}],
        "parameters": [
          {"name": "size", "in": "query", "required": true, "schema": {"type": "integer", "minimum": 1}},
          {"name": "Mood", "in": "header", "schema": {"enum": ["good"]}}
        ],
        "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
        "responses": {
          "200": {"headers": {"Weight": {"required": true, "schema": {"type": "integer"}}},
                  "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
          "204": {"description": "Done"},
          "422": {"headers": {}, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
          "503": {"headers": {}}
        }
      },
      "get": {"tags": ["other"], "operationId": "getThing", "responses": {"200": {"headers": {}}}}
    },
    "/lines": {"post": {"tags": ["things"], "operationId": "postLines",
      "requestBody": {"content": {"application/x-ndjson": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
      "responses": {"200": {"headers": {}, "content": {"application/x-ndjson": {"schema": {"type": "object"}}}}}}},
    "/deep/{rest}": {
      "parameters": [{"name": "rest", "in": "path", "required": true, "x-multi-segment": true, "schema": {"type": "string"}}],
      "get": {"tags": ["other"], "operationId": "getDeep", "responses": {"200": {"headers": {}}}}
    },
    "/deep/er/{rest}": {"get": {"tags": ["other"], "operationId": "getDeeper", "responses": {"200": {"headers": {}}}}}
  },
  "components": {
    "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
    "schemas": {
      "Thing": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
      "Error": {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
    }
  }
}`

func newSmall(t *testing.T) *document {
	t.Helper()
	d, err := parseDocument([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// talk is an exchange as text.
type talk struct {
	method, target, sent string
	status               int
	body                 string
	change               func(request, answer http.Header)
}

func (c talk) exchange() exchange {
	r := httptest.NewRequest(c.method, c.target, nil)
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	r.Header.Set("Authorization", "Bearer x")
	h := http.Header{"Content-Type": {"application/json"}, "Weight": {"7"}}
	if c.status != http.StatusOK {
		h.Del("Weight")
	}
	if c.change != nil {
		c.change(r.Header, h)
	}
	return exchange{request: r, sent: []byte(c.sent), status: c.status, header: h, body: []byte(c.body)}
}

// Each exchange has one thing that the document does not allow.
func TestFindsWhatIsNotDocumented(t *testing.T) {
	const good, thing, failure = "/things/a?size=1", `{"name":"n"}`, `{"error":"e"}`
	lines := func(request, answer http.Header) {
		request.Set("Content-Type", "application/x-ndjson")
		answer.Set("Content-Type", "application/x-ndjson")
		answer.Del("Weight")
	}
	for name, c := range map[string]struct {
		talk
		want string // in the one problem; "" for none
	}{
		"as documented":              {talk{"PUT", good, thing, 200, thing, nil}, ""},
		"refused for what it was":    {talk{"PUT", "/things/1?x=1", "[", 422, failure, nil}, ""},
		"an unknown path":            {talk{"GET", "/nothing", "", 404, failure, nil}, ""},
		"accepted lines":             {talk{"POST", "/lines", "[]\n\n{\"name\":\"n\"}", 200, "{\"status_code\":422}\n{\"status_code\":201}\n", lines}, ""},
		"another status":             {talk{"PUT", good, thing, 201, thing, nil}, "status is not documented"},
		"another member":             {talk{"PUT", good, thing, 200, `{"name":"n","colour":"red"}`, nil}, "colour"},
		"a member of another type":   {talk{"PUT", good, thing, 200, `{"name":1}`, nil}, "want string"},
		"no JSON":                    {talk{"PUT", good, thing, 200, `{`, nil}, "the body: unexpected EOF"},
		"another media type":         {talk{"PUT", good, thing, 200, thing, func(_, a http.Header) { a.Set("Content-Type", "text/plain") }}, "text/plain is not documented"},
		"no media type":              {talk{"PUT", good, thing, 200, thing, func(_, a http.Header) { a.Del("Content-Type") }}, "no media type"},
		"a body where there is none": {talk{"PUT", good, thing, 204, thing, nil}, "it has a body"},
		"a header less":              {talk{"PUT", good, thing, 200, thing, func(_, a http.Header) { a.Del("Weight") }}, "header Weight is missing"},
		"another header":             {talk{"PUT", good, thing, 200, thing, func(_, a http.Header) { a.Set("Colour", "red") }}, "header Colour is not documented"},
		"a wrong header":             {talk{"PUT", good, thing, 200, thing, func(_, a http.Header) { a.Set("Weight", "light") }}, "header Weight"},
		"accepted: wrong path":       {talk{"PUT", "/things/A?size=1", thing, 200, thing, nil}, "path parameter id"},
		"accepted: no parameter":     {talk{"PUT", "/things/a", thing, 200, thing, nil}, "query parameter size is required"},
		"accepted: wrong parameter":  {talk{"PUT", "/things/a?size=0", thing, 200, thing, nil}, "query parameter size"},
		"accepted: more parameters":  {talk{"PUT", good + "&x=1", thing, 200, thing, nil}, "query parameter x is not documented"},
		"accepted: wrong header":     {talk{"PUT", good, thing, 200, thing, func(r, _ http.Header) { r.Set("Mood", "bad") }}, "header parameter Mood"},
		"accepted: no credentials":   {talk{"PUT", good, thing, 200, thing, func(r, _ http.Header) { r.Del("Authorization") }}, "credentials"},
		"accepted: another scheme":   {talk{"PUT", good, thing, 200, thing, func(r, _ http.Header) { r.Set("Authorization", "Basic x") }}, "credentials"},
		"accepted: no body":          {talk{"PUT", good, "", 200, thing, nil}, "a body is required"},
		"accepted: another member":   {talk{"PUT", good, `{"name":"n","x":1}`, 200, thing, nil}, "the request's body"},
		"accepted: a wrong line":     {talk{"POST", "/lines", "{}\n", 200, "{\"status_code\":201}\n", lines}, "the request's body, line 1"},
		"unknown path, no error":     {talk{"GET", "/nothing", "", 404, `{}`, nil}, "error"},
		"unknown path, success":      {talk{"GET", "/nothing", "", 200, `{}`, func(_, a http.Header) { a.Del("Weight") }}, "status is not documented"},
		"other methods in Allow":     {talk{"POST", "/things/a", "", 405, "", func(_, a http.Header) { a.Set("Allow", "GET") }}, `the document has "GET, PUT"`},
	} {
		problems := Of("things").checkExchange(newSmall(t), c.exchange())
		if found := strings.Join(problems, "\n"); c.want == "" && found != "" || c.want != "" && (len(problems) != 1 || !strings.Contains(found, c.want)) {
			t.Errorf("%s: got %q, want one with %q", name, problems, c.want)
		}
	}
}

func TestFind(t *testing.T) {
	d := newSmall(t)
	for target, want := range map[string]string{
		"/things/a": "getThing map[id:a]", "/things/a%2Fb": "getThing map[id:a/b]", "/things/": "", "/things": "", "/things/a/": "", "/": "",
		"/deep/a/b": "getDeep map[rest:a/b]", "/deep/er/a": "getDeeper map[rest:a]", "/deep/er/a/b": "getDeep map[rest:er/a/b]",
	} {
		got := ""
		if o, parameters, ok := d.findOperation(httptest.NewRequest("GET", target, nil)); ok {
			got = fmt.Sprint(o.id, " ", parameters)
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
}

// Statuses of 500 and above must be seen once, all others for each operation.
func TestUnseen(t *testing.T) {
	d, traffic := newSmall(t), Of("things")
	see := func(method, target string, status int) {
		traffic.checkExchange(d, talk{method, target, "", status, "", nil}.exchange())
	}
	want := []string{"any operation 503", "postLines 200", "putThing 200", "putThing 204", "putThing 422"}
	if got := traffic.listUnseen(d); !slices.Equal(got, want) {
		t.Errorf("of nothing: got %q, want %q", got, want)
	}
	see("PUT", "/things/a", 204)
	see("PUT", "/things/a", 503)
	see("GET", "/things/a", 200)
	want = []string{"postLines 200", "putThing 200", "putThing 422"}
	if got := traffic.listUnseen(d); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Of("other").listUnseen(d); !slices.Equal(got, []string{"getDeep 200", "getDeeper 200", "getThing 200"}) {
		t.Errorf("of another surface: got %q", got)
	}
}

// Requests and answers pass through Watch unchanged.
func TestWatchChangesNothing(t *testing.T) {
	sent := `{"event_id":"` + strings.Repeat("x", 100<<10) + `"}`
	var got bytes.Buffer
	handler := Of("ingest").Watch(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(&got, r.Body); err != nil {
			t.Error(err)
		}
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Request-Id", strings.Repeat("0", 24))
		h.Set("Www-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":`)
		_, _ = io.WriteString(w, `"e"}`)
	}))
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest("POST", "/v1/ingest/events", strings.NewReader(sent)))
	if got.String() != sent || answer.Code != http.StatusUnauthorized || answer.Body.String() != `{"error":"e"}` {
		t.Errorf("%d bytes arrived, answered %d %s", got.Len(), answer.Code, answer.Body)
	}
}

// The served document can be used for comparison.
func TestParse(t *testing.T) {
	d, err := parseDocument([]byte(edge.OpenAPI()))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range d.operations() {
		if o.id == "" || o.tag == "" || len(o.documentedStatuses()) == 0 {
			t.Errorf("%s: operation %q with tag %q and %d statuses", o.node.pointer, o.id, o.tag, len(o.documentedStatuses()))
		}
	}
}
