package edge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/edge"
)

// newEdge returns an edge and its log.
func newEdge() (*edge.Edge, *bytes.Buffer) {
	var out bytes.Buffer
	return &edge.Edge{Logger: slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))}, &out
}

func get(h http.Handler, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

// routed returns a router with one route.
func routed(e *edge.Edge, method, pattern string, h edge.Handler, mode ...edge.Mode) *edge.Router {
	r := e.Router()
	var table edge.Table[edge.Handler]
	table.Add(method, pattern, edge.Permission{}, edge.Body{}, h, mode...)
	edge.Mount(r, edge.PlainSurface(e), table)
	return r
}

func failing(err error) edge.Handler {
	return func(http.ResponseWriter, *http.Request) error { return err }
}

func TestErrorsBecomeAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		err        error
		status     int
		body       string // without the request id
		retryAfter string
	}{
		"invalid":         {fault.New(fault.Invalid, "No"), 422, `{"error":"No"}`, ""},
		"unauthorized":    {fault.New(fault.Unauthorized, "No"), 401, `{"error":"No"}`, ""},
		"forbidden":       {fault.New(fault.Forbidden, "No"), 403, `{"error":"No"}`, ""},
		"not found":       {fault.New(fault.NotFound, "No"), 404, `{"error":"No"}`, ""},
		"conflict":        {fault.New(fault.Conflict, "No"), 409, `{"error":"No"}`, ""},
		"gone":            {fault.New(fault.Gone, "No"), 410, `{"error":"No"}`, ""},
		"too large":       {fault.New(fault.TooLarge, "No"), 413, `{"error":"No"}`, ""},
		"too slow":        {fault.New(fault.TooSlow, "No"), 408, `{"error":"No"}`, ""},
		"media":           {fault.New(fault.UnsupportedMedia, "No"), 415, `{"error":"No"}`, ""},
		"plan limit":      {&fault.Error{Kind: fault.PlanLimit, Message: "No", RetryAfter: time.Hour}, 429, `{"error":"No","code":"plan_limit"}`, ""},
		"rate limited":    {&fault.Error{Kind: fault.RateLimited, Message: "No", RetryAfter: 61_500 * time.Millisecond}, 429, `{"error":"No","code":"rate_limited"}`, "62"},
		"overloaded":      {fault.New(fault.Overloaded, "No"), 503, `{"error":"No","code":"overloaded"}`, "1"},
		"outcome unknown": {fault.New(fault.OutcomeUnknown, "No"), 503, `{"error":"No","code":"outcome_unknown"}`, "1"},
		"unavailable":     {fault.New(fault.Unavailable, "No"), 503, `{"error":"No","code":"unavailable"}`, "1"},
		"own code":        {&fault.Error{Kind: fault.Unavailable, Code: "frozen", Message: "No"}, 503, `{"error":"No","code":"frozen"}`, "1"},
		"wrapped":         {fmt.Errorf("step: %w", fault.New(fault.Gone, "No")), 410, `{"error":"No"}`, ""},
		"plain":           {errors.New("disk /dev/sda"), 500, `{"error":"Internal error"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e, out := newEdge()
			w := get(e.Handle(failing(tc.err)), "GET", "/")
			var body map[string]any
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
				t.Fatal(err)
			}
			id := w.Header().Get(edge.RequestIDHeader)
			if tc.status >= 500 && body["request_id"] != id {
				t.Errorf("request id: got %v, want %q", body["request_id"], id)
			}
			got := strings.Replace(w.Body.String(), fmt.Sprintf(`,"request_id":%q`, id), "", 1)
			if w.Code != tc.status || got != tc.body {
				t.Errorf("got %d %s, want %d %s", w.Code, got, tc.status, tc.body)
			}
			if got := w.Header().Get("Retry-After"); got != tc.retryAfter {
				t.Errorf("Retry-After: got %q, want %q", got, tc.retryAfter)
			}
			if !strings.Contains(out.String(), id) || len(id) != 24 {
				t.Errorf("no log line with request id %q: %s", id, out)
			}
			if edge.StatusOf(tc.err) != tc.status {
				t.Errorf("Status: got %d, want %d", edge.StatusOf(tc.err), tc.status)
			}
		})
	}
}

func TestCauseIsLoggedAndNotShown(t *testing.T) {
	e, out := newEdge()
	w := get(e.Handle(failing(fault.Wrap(fault.Unavailable, "The store can't be reached", errors.New("cause-7")))), "GET", "/")
	if strings.Contains(w.Body.String(), "cause-7") {
		t.Errorf("the answer shows the cause: %s", w.Body)
	}
	if !strings.Contains(out.String(), "cause-7") {
		t.Errorf("the log has no cause: %s", out)
	}
}

// The cause may be next to the error that determines the response, instead of inside it.
func TestCauseNextToTheFaultIsLogged(t *testing.T) {
	e, out := newEdge()
	unavailable := fault.New(fault.Unavailable, "The store can't be reached")
	w := get(e.Handle(failing(fmt.Errorf("step-3: %w: %w", unavailable, errors.New("cause-7")))), "GET", "/")
	if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "cause-7") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if !strings.Contains(out.String(), "step-3: The store can't be reached: cause-7") {
		t.Errorf("the log has no cause: %s", out)
	}
}

// No log line contains data of clients, not even the cause of a rejection.
func TestLogHoldsNothingOfTheClient(t *testing.T) {
	e, out := newEdge()
	m := routed(e, "POST", "/v1/things/{thing}", func(_ http.ResponseWriter, r *http.Request) error {
		body, err := edge.ReadBody(r, edge.JSONBody(100))
		if err != nil {
			return err
		}
		var v struct{ A int }
		return edge.DecodeStrict(body, &v)
	})
	for _, body := range []string{`{"A":"secret-body"}`, `{"A":1}`, `{"A":"secret-body"`} {
		r := httptest.NewRequest("POST", "/v1/things/secret-path?token=secret-query", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer secret-token")
		r.Header.Set("X-Request-Id", "secret-id")
		m.ServeHTTP(httptest.NewRecorder(), r)
	}
	r := httptest.NewRequest("GET", "/secret-path", nil)
	r.Method = "SECRET-METHOD"
	m.ServeHTTP(httptest.NewRecorder(), r)
	if got := out.String(); strings.Contains(strings.ToLower(got), "secret") {
		t.Errorf("logged: %s", got)
	}
	if got := strings.Count(out.String(), "\n"); got != 4 {
		t.Errorf("got %d log lines, want 4", got)
	}
	if !strings.Contains(out.String(), `"route":"/v1/things/{thing}"`) {
		t.Errorf("no route: %s", out)
	}
}

func TestPanicIs500(t *testing.T) {
	e, out := newEdge()
	w := get(e.Handle(func(http.ResponseWriter, *http.Request) error { panic("oops-9") }), "GET", "/")
	if w.Code != 500 || strings.Contains(w.Body.String(), "oops-9") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if !strings.Contains(out.String(), "oops-9") {
		t.Errorf("the log has no panic: %s", out)
	}
}

func TestFailureAfterTheAnswerBeganEndsTheConnection(t *testing.T) {
	e, out := newEdge()
	begin := func(w http.ResponseWriter) { _, _ = io.WriteString(w, "half") }
	for name, h := range map[string]edge.Handler{
		"error": func(w http.ResponseWriter, _ *http.Request) error { begin(w); return errors.New("late") },
		"panic": func(w http.ResponseWriter, _ *http.Request) error { begin(w); panic("late") },
		"abort": func(w http.ResponseWriter, _ *http.Request) error { begin(w); panic(http.ErrAbortHandler) },
	} {
		func() {
			defer func() {
				if got := recover(); got != http.ErrAbortHandler {
					t.Errorf("%s: got %v, want ErrAbortHandler", name, got)
				}
			}()
			get(e.Handle(h), "GET", "/")
		}()
	}
	if got := strings.Count(out.String(), "\n"); got != 3 {
		t.Errorf("got %d log lines, want 3", got)
	}
}

func TestCancelledRequestIsNotAnInternalError(t *testing.T) {
	e, out := newEdge()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w := httptest.NewRecorder()
	e.Handle(func(_ http.ResponseWriter, r *http.Request) error { return r.Context().Err() }).
		ServeHTTP(w, httptest.NewRequest("GET", "/", nil).WithContext(ctx))
	if w.Code != 503 || strings.Contains(out.String(), "ERROR") {
		t.Errorf("got %d, log %s", w.Code, out)
	}
}

// The last response of a connection has Connection: close, however it is written.
func TestLastAnswer(t *testing.T) {
	for name, h := range map[string]edge.Handler{
		"body":   func(w http.ResponseWriter, _ *http.Request) error { return edge.WriteJSON(w, 200, struct{}{}) },
		"write":  func(w http.ResponseWriter, _ *http.Request) error { _, err := io.WriteString(w, "x"); return err },
		"flush":  func(w http.ResponseWriter, _ *http.Request) error { w.(http.Flusher).Flush(); return nil },
		"failed": failing(fault.New(fault.NotFound, "No")),
		"panic":  func(http.ResponseWriter, *http.Request) error { panic("oops") },
		"plain":  edge.Plain(http.NotFoundHandler()),
	} {
		for last, want := range map[bool]string{true: "close", false: ""} {
			e, _ := newEdge()
			e.Last = func() bool { return last }
			if got := get(e.Handle(h), "GET", "/").Header().Get("Connection"); got != want {
				t.Errorf("%s, last %v: got %q, want %q", name, last, got, want)
			}
		}
	}
}

func TestChallenge(t *testing.T) {
	unauthorized := failing(fault.New(fault.Unauthorized, "Invalid API key"))
	for challenge, want := range map[string]string{"": "", "Bearer": "Bearer"} {
		e := &edge.Edge{Challenge: challenge}
		w := get(e.Handle(unauthorized), "GET", "/")
		if got := w.Header().Get("WWW-Authenticate"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestHeadersOfAnAnswerThatDidNotComeAreDropped(t *testing.T) {
	e, _ := newEdge()
	w := get(e.Handle(func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		w.Header().Set("ETag", `"1"`)
		return fault.New(fault.NotFound, "Not found")
	}), "GET", "/")
	if got := w.Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control: got %q", got)
	}
	if got := w.Header().Get("ETag"); got != "" {
		t.Errorf("ETag: got %q", got)
	}
}

func TestUnknownRoutesAndMethods(t *testing.T) {
	e, _ := newEdge()
	ok := e.Handle(func(w http.ResponseWriter, _ *http.Request) error { return edge.WriteJSON(w, 200, struct{}{}) })
	m := e.Router()
	m.Method("GET", "/a", ok)
	m.Method("POST", "/a", ok)
	below := e.Router()
	below.Method("DELETE", "/b/{id}", ok)
	m.Mount("/below", below)
	for name, tc := range map[string]struct {
		method, path string
		status       int
		allow, body  string
	}{
		"known":               {"GET", "/a", 200, "", `{}`},
		"unknown path":        {"GET", "/c", 404, "", `{"error":"Not found"}`},
		"unknown path below":  {"GET", "/below/c", 404, "", `{"error":"Not found"}`},
		"other method":        {"PUT", "/a", 405, "GET, POST", `{"error":"Method not allowed"}`},
		"other method below":  {"GET", "/below/b/1", 405, "DELETE", `{"error":"Method not allowed"}`},
		"method of the agent": {"BREW", "/a", 405, "GET, POST", `{"error":"Method not allowed"}`},
		"neither is known":    {"BREW", "/c", 404, "", `{"error":"Not found"}`},
	} {
		w := get(m, tc.method, tc.path)
		if w.Code != tc.status || w.Body.String() != tc.body || w.Header().Get("Allow") != tc.allow {
			t.Errorf("%s: got %d %s Allow %q, want %d %s %q", name, w.Code, w.Body, w.Header().Get("Allow"), tc.status, tc.body, tc.allow)
		}
	}
}

// Frequent responses on a route with many requests do not fill the log.
func TestQuietRoutes(t *testing.T) {
	for name, tc := range map[string]struct {
		err         error
		loud, quiet string
	}{
		"good":        {nil, "INFO", "DEBUG"},
		"refused":     {fault.New(fault.Invalid, "No"), "INFO", "DEBUG"},
		"overloaded":  {fault.New(fault.Overloaded, "No"), "WARN", "DEBUG"},
		"unavailable": {fault.New(fault.Unavailable, "No"), "WARN", "WARN"},
		"internal":    {errors.New("oops"), "ERROR", "ERROR"},
	} {
		for quiet, want := range map[bool]string{false: tc.loud, true: tc.quiet} {
			e, out := newEdge()
			e.Quiet = quiet
			get(e.Handle(failing(tc.err)), "GET", "/")
			if !strings.Contains(out.String(), `"level":"`+want+`"`) {
				t.Errorf("%s, quiet %v: got %s, want %s", name, quiet, out, want)
			}
		}
	}
}

func BenchmarkHandle(b *testing.B) {
	for name, e := range map[string]*edge.Edge{
		"logged":           {Logger: slog.New(slog.NewJSONHandler(io.Discard, nil))},
		"quiet":            {Logger: slog.New(slog.NewJSONHandler(io.Discard, nil)), Quiet: true},
		"quiet-and-metred": {Logger: slog.New(slog.NewJSONHandler(io.Discard, nil)), Quiet: true, Metrics: edge.NewMetrics(prometheus.NewRegistry())},
	} {
		b.Run(name, func(b *testing.B) {
			h := e.Handle(func(w http.ResponseWriter, _ *http.Request) error {
				return edge.WriteJSON(w, 200, edge.ErrorBody{Error: "x"})
			})
			r := httptest.NewRequest("GET", "/", nil)
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}
