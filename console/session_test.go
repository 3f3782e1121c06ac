package console_test

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/iotest"
)

// routes returns every route of the surface with a valid body. Not all objects in the paths exist.
func (w *world) routes() []struct{ method, path, body string } {
	bot := string(w.first[red].Agent)
	return []struct{ method, path, body string }{
		{"GET", "/ingest-keys", ""},
		{"POST", "/ingest-keys", `{"name":"n"}`},
		{"GET", "/ingest-keys/k", ""},
		{"DELETE", "/ingest-keys/k", ""},
		{"GET", "/agents", ""},
		{"POST", "/agents", `{}`},
		{"GET", "/agents/" + bot, ""},
		{"PATCH", "/agents/" + bot, `{"bridge":true}`},
		{"GET", "/agents/" + bot + "/keys", ""},
		{"POST", "/agents/" + bot + "/keys", `{}`},
		{"POST", "/agents/" + bot + "/keys/k/retire", ""},
		{"POST", "/agents/" + bot + "/keys/k/revoke", `{}`},
		{"GET", "/policies", ""},
		{"PATCH", "/ingest-keys/k", `{"name":"n"}`},
		{"POST", "/policies", `{"name":"n","rules":[]}`},
		{"GET", "/policies/p", ""},
		{"PATCH", "/policies/p", `{}`},
		{"DELETE", "/policies/p", ""},
		{"POST", "/policies/p/activate", ""},
		{"POST", "/policies/p/deactivate", ""},
		{"POST", "/policies/check", `{"name":"n"}`},
		{"POST", "/policies/p/simulate", `{"last":1}`},
		{"GET", "/approvals", ""},
		{"GET", "/approvals/a", ""},
		{"POST", "/approvals/a/votes", `{}`},
		{"POST", "/approvals/a/votes/options", `{}`},
		{"POST", "/voter-keys", `{}`},
		{"POST", "/voter-keys/options", `{}`},
		{"GET", "/deputies", ""},
		{"PUT", "/deputies/m", `{}`},
		{"DELETE", "/deputies/m", ""},
		{"POST", "/approvals/a/revoke", ""},
		{"GET", "/runs", ""},
		{"GET", "/runs/r", ""},
		{"GET", "/webhooks", ""},
		{"POST", "/webhooks", `{"url":"https://a.example/","events":["run.*"]}`},
		{"GET", "/webhooks/w", ""},
		{"PATCH", "/webhooks/w", `{}`},
		{"DELETE", "/webhooks/w", ""},
		{"POST", "/webhooks/callback-key/rotate", ""},
		{"POST", "/webhooks/w/rotate", ""},
		{"POST", "/webhooks/w/test", ""},
		{"GET", "/webhooks/w/deliveries", ""},
		{"POST", "/webhooks/m/replay", ""},
		{"GET", "/organization/plan-usage", ""},
		{"GET", "/organization", ""},
		{"GET", "/audit", ""},
		{"PATCH", "/organization", `{"name":"n"}`},
		{"POST", "/events/e/erase", `{"reason":"other"}`},
		{"POST", "/erasures", `{"agent_id":"a","reason":"other"}`},
		{"GET", "/erasures", ""},
		{"GET", "/erasures/e", ""},
		{"GET", "/witnesses", ""},
		{"GET", "/stream-export", ""},
		{"GET", "/tokens", ""},
		{"POST", "/tokens", `{"name":"ci","role":"member","expires_at":"2026-11-30T00:00:00Z"}`},
		{"DELETE", "/tokens/k", ""},
		{"GET", "/shares", ""},
		{"POST", "/shares", `{"note":"KPMG","expires_at":"2026-11-30T00:00:00Z"}`},
		{"DELETE", "/shares/s", ""},
		{"PUT", "/witnesses", `{"policy":"quorum none\n"}`},
		{"GET", "/views", ""},
		{"PUT", "/views", `{"name":"n","search":"x"}`},
		{"DELETE", "/views?name=n", ""},
		{"POST", "/coverage", standardCoverage},
		{"GET", "/columns", ""},
		{"PUT", "/columns", `{"columns":[]}`},
		{"GET", "/tool-keys", ""},
		{"PUT", "/tool-keys", `{"keys":[]}`},
		{"PUT", "/stream-export", `{"url":"https://logs.example/v1/logs","format":"ocsf"}`},
		{"DELETE", "/stream-export", ""},
		{"POST", "/stream-export/test", `{}`},
		{"DELETE", "/witnesses", ""},
	}
}

// Every route identifies the caller before anything else.
func TestWhoAsks(t *testing.T) {
	w := newWorld(t)
	for _, route := range w.routes() {
		ask := func(change ...func(*http.Request)) *http.Request {
			return w.request(route.method, route.path, route.body, change...)
		}
		name := route.method + " " + route.path
		w.refuses(name+" without session", ask(as("")), 401, "Not signed in")
		w.refuses(name+" with an unknown session", ask(as("nobody")), 401, "Not signed in")
		w.refuses(name+" with a session that can't be looked up", ask(as("lost")), 503, "Accounts can't be read")
		w.refuses(name+" with a defect", ask(as("defect")), 500, "Internal error")
		w.refuses(name+" without organization", ask(as("no-organization")), 403, "Your role does not allow this")
		w.refuses(name+" with an unknown role", ask(as("red-king")), 403, "Your role does not allow this")
		if route.method != "GET" && !strings.HasPrefix(route.path, "/tokens") && !strings.HasPrefix(route.path, "/shares") && route.path != "/coverage" &&
			(route.method != "DELETE" || !strings.HasPrefix(route.path, "/deputies")) { // before the body is read
			w.refuses(name+" as auditor", ask(as("red-auditor"), header("Content-Type", "text/plain")), 403, "Your role does not allow this")
		}
	}
	if got := w.kinds(blue); got != nil {
		t.Errorf("blue's ledger has %v", got)
	}
}

// A request that a browser makes on behalf of another site changes nothing, whatever cookie it sends.
func TestOtherSites(t *testing.T) {
	const message = "Requests from other sites are not accepted"
	w := newWorld(t)
	for _, route := range w.routes() {
		if route.method == "GET" {
			continue
		}
		name := route.method + " " + route.path
		for _, h := range [][2]string{
			{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"},
		} {
			w.refuses(name+" "+h[0]+" "+h[1], w.request(route.method, route.path, route.body, header(h[0], h[1])), 403, message)
		}
	}
	if got := w.kinds(red); got != nil {
		t.Errorf("red's ledger has %v", got)
	}
	for name, own := range map[string]func(*http.Request){
		"same origin": header("Sec-Fetch-Site", "same-origin"),
		"typed":       header("Sec-Fetch-Site", "none"),
		"own origin":  header("Origin", "http://example.com"), // httptest's host
		"no browser":  func(*http.Request) {},
	} {
		if g := w.do(w.request("POST", "/agents", `{}`, own)); g.status != 201 {
			t.Errorf("%s: got %d %s", name, g.status, g.text)
		}
	}
}

func TestRoutes(t *testing.T) {
	w := newWorld(t)
	for path, allow := range map[string]string{
		"/ingest-keys": "GET, POST", "/ingest-keys/k": "GET, PATCH, DELETE", "/agents": "GET, POST", "/agents/a": "GET, PATCH", "/agents/a/keys": "GET, POST",
		"/agents/a/keys/k/retire": "POST", "/policies": "GET, POST", "/policies/p": "GET, PATCH, DELETE",
		"/policies/p/activate": "POST", "/policies/p/simulate": "POST", "/approvals": "GET", "/approvals/a": "GET", "/approvals/a/votes": "POST",
		"/approvals/a/revoke": "POST", "/runs": "GET", "/runs/r": "GET", "/webhooks": "GET, POST", "/webhooks/w": "GET, PATCH, DELETE", "/webhooks/callback-key/rotate": "POST", "/webhooks/w/rotate": "POST", "/webhooks/w/test": "POST", "/webhooks/w/deliveries": "GET", "/webhooks/m/replay": "POST", "/tokens": "GET, POST", "/tokens/k": "DELETE", "/shares": "GET, POST", "/shares/s": "DELETE", "/events/e/erase": "POST", "/erasures": "GET, POST", "/erasures/e": "GET", "/organization": "GET, PATCH", "/organization/plan-usage": "GET", "/witnesses": "GET, PUT, DELETE", "/stream-export": "GET, PUT, DELETE", "/stream-export/test": "POST",
	} {
		r := w.request("PUT", path, "")
		if strings.Contains(allow, "PUT") {
			r = w.request("POST", path, "")
		}
		if g := w.do(r); g.header.Get("Allow") != allow {
			t.Errorf("%s: got Allow %q, want %q", path, g.header.Get("Allow"), allow)
		}
		w.refuses(r.Method+" "+path, r, 405, "Method not allowed")
	}
	for _, path := range []string{"", "/", "/agents/", "/agents/a/keys/k", "/policies/p/retire", "/organizations"} {
		w.refuses(path, w.request("GET", path, ""), 404, "Not found")
	}
}

// slow replaces the body with one that did not arrive in time.
func slow(r *http.Request) { r.Body = io.NopCloser(iotest.ErrReader(os.ErrDeadlineExceeded)) }

// All calls with a body report errors in it in the same way.
func TestBodies(t *testing.T) {
	w := newWorld(t)
	for _, route := range w.routes() {
		if route.method == "GET" || route.method == "DELETE" {
			continue
		}
		name := route.method + " " + route.path
		ask := func(body string, change ...func(*http.Request)) *http.Request {
			return w.request(route.method, route.path, body, change...)
		}
		w.refuses(name+" text", ask(route.body, header("Content-Type", "text/plain")), 415, "Content-Type must be application/json")
		w.refuses(name+" gzip", ask(route.body, header("Content-Encoding", "gzip")), 415, "Content-Encoding must be identity")
		w.refuses(name+" large", ask(`{"a":"`+strings.Repeat("x", 4<<20)+`"}`), 413, "The body is too large")
		w.refuses(name+" slow", ask(route.body, slow), 408, "The body took too long to arrive")
		if strings.HasPrefix(route.path, "/policies") && !strings.HasSuffix(route.path, "ate") {
			continue // policystore parses those
		}
		w.refuses(name+" unknown member", ask(`{"colour":"red"}`), 422, `Member "colour" is not known`)
		w.refuses(name+" array", ask(`[]`), 422, "The body must be a JSON object")
		w.refuses(name+" no JSON", ask(`{`), 422, "The body is not valid JSON")
		w.refuses(name+" twice", ask(`{"name":1,"name":2}`), 422, `Member "name" appears twice: send it once`)
	}
}
