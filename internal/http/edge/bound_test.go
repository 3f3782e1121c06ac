package edge_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/edge"
)

const bound = 10 * time.Second

// grace is the additional time of a handler that ignores its context.
const grace = 500 * time.Millisecond

// A client of a hanging handler gets the right response in time.
func TestBound(t *testing.T) {
	stuck := func(http.ResponseWriter, *http.Request) error {
		time.Sleep(time.Hour)
		return nil
	}
	waits := func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("X-Of-Handler", "yes")
		<-r.Context().Done()
		return r.Context().Err()
	}
	unknown := func(_ http.ResponseWriter, r *http.Request) error {
		<-r.Context().Done()
		return fault.Wrap(fault.OutcomeUnknown, "It may be stored", r.Context().Err())
	}
	begins := func(w http.ResponseWriter, r *http.Request) error {
		_, _ = io.WriteString(w, "begun")
		time.Sleep(time.Minute)
		return nil
	}
	for _, test := range []struct {
		name    string
		method  string
		handler edge.Handler
		extra   time.Duration
		status  int
		body    string
		took    time.Duration
	}{
		{"answers", "GET", func(w http.ResponseWriter, _ *http.Request) error { _, _ = io.WriteString(w, "ok"); return nil }, 0, 200, "ok", 0},
		{"ends with its context", "GET", waits, 0, 503, `"code":"unavailable"`, bound},
		{"knows that the outcome is unknown", "POST", unknown, 0, 503, `"code":"outcome_unknown"`, bound},
		{"does not look at its context, reads", "GET", stuck, 0, 503, `"code":"unavailable"`, bound + grace},
		{"does not look at its context, writes", "POST", stuck, 0, 503, `"code":"outcome_unknown"`, bound + grace},
		{"has begun to answer", "GET", begins, 0, 200, "begun", time.Minute},
		{"waits on purpose", "GET", waits, time.Minute, 503, `"code":"unavailable"`, bound + time.Minute},
		{"refuses", "GET", func(http.ResponseWriter, *http.Request) error { return fault.New(fault.NotFound, "Not found") }, 0, 404, "Not found", 0},
		{"panics", "GET", func(http.ResponseWriter, *http.Request) error { panic("x") }, 0, 500, "Internal error", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &edge.Edge{Bound: edge.NewBound(bound)}
				h := e.Handle(test.handler)
				if test.extra > 0 {
					h = polled(e, test.handler, test.extra)
				}
				w := httptest.NewRecorder()
				began := time.Now()
				h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), test.method, "/", nil))
				if took := time.Since(began); took != test.took {
					t.Errorf("took %v, want %v", took, test.took)
				}
				if w.Code != test.status || !strings.Contains(w.Body.String(), test.body) {
					t.Errorf("got %d %s, want %d %s", w.Code, w.Body, test.status, test.body)
				}
				if test.status == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
					t.Error("there is no Retry-After")
				}
				if w.Header().Get(edge.RequestIDHeader) == "" {
					t.Error("there is no request id")
				}
				time.Sleep(2 * time.Hour) // who was left behind ends
				if e.Bound.LeftBehind() != 0 {
					t.Errorf("%d handlers are left behind", e.Bound.LeftBehind())
				}
			})
		})
	}
}

// polled returns a LongPoll route whose requests wait for a duration.
func polled(e *edge.Edge, h edge.Handler, wait time.Duration) http.Handler {
	surface := edge.PlainSurface(e)
	surface.Wait = func(*http.Request) time.Duration { return wait }
	var table edge.Table[edge.Handler]
	table.Add("GET", "/", edge.Permission{}, edge.Body{}, h, edge.LongPoll)
	r := e.Router()
	edge.Mount(r, surface, table)
	return r
}

// The time in which a body arrives does not count.
func TestSlowBodiesDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := edge.Edge{Bound: edge.NewBound(bound)}
		r, w := io.Pipe()
		go func() {
			for range 3 {
				time.Sleep(bound)
				_, _ = io.WriteString(w, "[]")
			}
			_ = w.Close()
		}()
		answer := httptest.NewRecorder()
		e.Handle(func(w http.ResponseWriter, r *http.Request) error {
			if _, err := edge.ReadBody(r, edge.JSONBody(100)); err != nil {
				return err
			}
			time.Sleep(bound - 1)
			if err := r.Context().Err(); err != nil {
				return err
			}
			<-r.Context().Done()
			return r.Context().Err()
		}).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "POST", "/", r))
		if answer.Code != 503 || !strings.Contains(answer.Body.String(), "ended before") {
			t.Errorf("got %d %s", answer.Code, answer.Body)
		}
	})
}

// An abandoned handler cannot respond, and still sees its own route although the router reuses it. If there are too
// many, requests are rejected.
func TestLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &edge.Edge{Bound: edge.NewBound(bound)}
		release := make(chan struct{})
		routes := make(chan string, 2000)
		m := routed(e, "GET", "/{name}", func(w http.ResponseWriter, r *http.Request) error {
			<-release
			w.Header().Set("X-Late", "yes")
			if _, err := io.WriteString(w, "late"); !errors.Is(err, http.ErrHandlerTimeout) {
				t.Errorf("got %v", err)
			}
			routes <- chi.URLParam(r, "name")
			return context.DeadlineExceeded
		})
		get := func(path string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			m.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
			return w
		}
		const most = 1024
		answers := make(chan *httptest.ResponseRecorder, most)
		for range most {
			go func() { answers <- get("/first") }()
		}
		var kept *httptest.ResponseRecorder
		for range most {
			if kept = <-answers; kept.Code != 503 {
				t.Fatalf("got %d %s", kept.Code, kept.Body)
			}
		}
		if w := get("/second"); w.Code != 503 || !strings.Contains(w.Body.String(), "overloaded") {
			t.Errorf("beyond the bound: got %d %s", w.Code, w.Body)
		}
		close(release)
		synctest.Wait()
		for range most {
			if name := <-routes; name != "first" {
				t.Fatalf("the route became %q", name)
			}
		}
		if body := kept.Body.String(); strings.Contains(body, "late") || kept.Header().Get("X-Late") != "" {
			t.Errorf("an answer changed after it was sent: %s", body)
		}
		if e.Bound.AnsweredLate() != most || e.Bound.LeftBehind() != 0 {
			t.Errorf("got %d late, %d left, want %d, 0", e.Bound.AnsweredLate(), e.Bound.LeftBehind(), most)
		}
	})
}
