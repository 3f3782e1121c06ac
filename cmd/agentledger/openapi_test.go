package main

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/test/openapitest"
)

// ask makes a request without a body; etag is If-None-Match, or "".
func ask(t *testing.T, method, url, etag string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if etag != "" {
		r.Header.Set("If-None-Match", etag)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

// The document is served unchanged, to pages of every origin, and only once to a client that caches it. The health
// checks of both listeners report a healthy service.
func TestDocumentAndHealth(t *testing.T) {
	p := startProcess(t, t.TempDir())
	answer, body := ask(t, "GET", p.main+edge.OpenAPIPath, "")
	etag := answer.Header.Get("ETag")
	if answer.StatusCode != http.StatusOK || body != edge.OpenAPI() || answer.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("got %d, %d bytes, %v", answer.StatusCode, len(body), answer.Header)
	}
	for _, c := range []struct {
		method, etag string
		status       int
	}{
		{"HEAD", "", 200}, {"GET", etag, 304}, {"HEAD", etag, 304}, {"GET", `"other", W/` + etag, 304}, {"GET", "*", 304}, {"HEAD", `"other"`, 200},
	} {
		answer, body := ask(t, c.method, p.main+edge.OpenAPIPath, c.etag)
		if answer.StatusCode != c.status || body != "" || answer.Header.Get("ETag") != etag {
			t.Errorf("%s with %q: got %d, %d bytes, ETag %s", c.method, c.etag, answer.StatusCode, len(body), answer.Header.Get("ETag"))
		}
	}
	for _, url := range []string{p.main + "/health", p.identity + "/health"} {
		for method, want := range map[string]string{"GET": `{"status":"ok"}`, "HEAD": ""} {
			if answer, body := ask(t, method, url, ""); answer.StatusCode != http.StatusOK || strings.TrimSpace(body) != want {
				t.Errorf("%s %s: got %d %q", method, url, answer.StatusCode, body)
			}
		}
	}
	for _, url := range []string{p.main + "/livez", p.main + "/readyz", p.identity + "/livez", p.identity + "/readyz"} {
		for method, want := range map[string]string{"GET": "ok\n", "HEAD": ""} {
			if answer, body := ask(t, method, url, ""); answer.StatusCode != http.StatusOK || body != want {
				t.Errorf("%s %s: got %d %q", method, url, answer.StatusCode, body)
			}
		}
	}
}

// openSmall opens a service on an empty store.
func openSmall(t *testing.T) (*service, config.Serve) {
	t.Helper()
	return openSmallWith(t, func(*config.Serve) {})
}

func openSmallWith(t *testing.T, change func(*config.Serve)) (*service, config.Serve) {
	t.Helper()
	c := config.Serve{
		Store:    config.Store{Data: t.TempDir()},
		Identity: config.Identity{PublicURL: "http://log.test", Environment: "test"},
		Limits:   config.Limits{Plans: map[string]uint64{"enterprise": 0}},
		Tuning:   config.Tuning{CacheMiB: 8, MaxEventKiB: 256, ClockAhead: 15 * time.Minute},
	}
	change(&c)
	s, err := openService(t.Context(), c, logOnlyObservation(slog.New(slog.DiscardHandler)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// The tables of all surfaces and the document agree.
func TestRoutesMatchTheDocument(t *testing.T) {
	s, c := openSmall(t)
	defer s.Close()
	shared := &edge.Edge{Logger: slog.New(slog.DiscardHandler)}
	signIn, err := s.identitySurface(c, "a platform secret of a test", shared)
	if err != nil {
		t.Fatal(err)
	}
	public, err := s.mainHandler(c, signIn, shared)
	if err != nil {
		t.Fatal(err)
	}
	private := s.identityHandler(signIn, shared)
	document := openapitest.Of("ingest", "public", "pages", "console", "identity", "service")
	document.CheckRoutes(t, append(public.(*edge.Router).List(), onlyPlatform(private.(*edge.Router).List())...))
}

// onlyPlatform omits the routes that both listeners have.
func onlyPlatform(routes []edge.Listed) []edge.Listed {
	return slices.DeleteFunc(routes, func(r edge.Listed) bool { return !strings.HasPrefix(r.Pattern, "/v1/id/platform/") })
}

// A process whose store can't be read is live but not ready.
func TestUnready(t *testing.T) {
	s, _ := openSmall(t)
	e := new(edge.Edge)
	router := e.Router()
	s.addHealthRoutes(router, e)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"GET", "HEAD"} {
		answer := httptest.NewRecorder()
		traffic.Watch(t, router).ServeHTTP(answer, httptest.NewRequest(method, "/readyz", nil))
		if answer.Code != http.StatusServiceUnavailable || answer.Header().Get("Retry-After") == "" {
			t.Errorf("%s: got %d, %v", method, answer.Code, answer.Header())
		}
	}
}
