package ingest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/ingest"
	"github.com/agentledger/agentledger/log"
)

// stalled makes the appends of one organization wait.
type stalled struct {
	ingest.Ledgers
	tenant  id.Tenant
	entered chan struct{} // receives once for each append that waits
	release chan struct{} // closed when they may continue
}

func (s *stalled) AppendTo(ctx context.Context, of *log.State, prepares []log.Prepare) []log.Outcome {
	if of.Identity().Tenant == s.tenant {
		s.entered <- struct{}{}
		<-s.release
	}
	return s.Ledgers.AppendTo(ctx, of, prepares)
}

const tooManyOfOne = "Too many requests of this organization are under way"

// If an organization exceeds its capacity, requests are rejected immediately, before their body is read. The other
// organization is not affected, and everything works again when there is capacity.
func TestOverload(t *testing.T) {
	ledgers := &stalled{entered: make(chan struct{}, 2), release: make(chan struct{})}
	w := newWorld(t, func(o *ingest.Options) {
		ledgers.Ledgers, o.Ledgers = o.Ledgers, ledgers
		o.MaxInFlight, o.MaxInFlightOrganization = 3, 2
	})
	ledgers.tenant = w.red.tenant
	done := make(chan answer, 2)
	for _, name := range []string{"a", "b"} {
		body := w.envelope(&w.red, name, nil)
		go func() { done <- w.send(&w.red, body) }()
		<-ledgers.entered
	}
	for path, body := range map[string]string{
		eventsPath: "never read", eventsPath + "/batch": "never read",
	} {
		a := w.post(path, w.red.token, body)
		w.expect(a, http.StatusServiceUnavailable, tooManyOfOne)
		if a.fields["code"] != "overloaded" || a.Header().Get("Retry-After") == "" {
			t.Errorf("%s: got %s, Retry-After %q", path, a.Body, a.Header().Get("Retry-After"))
		}
	}
	w.expect(w.post(evaluatePath, w.red.token, w.question(&w.red, nil)), http.StatusOK, "") // has its own capacity
	w.mustCreate(&w.blue, "a", nil)
	large := w.envelope(&w.blue, "large", fields{"payload": fields{"text": strings.Repeat("x", 70<<10)}})
	w.expect(w.send(&w.blue, large), http.StatusServiceUnavailable, "Too many requests are under way")
	close(ledgers.release)
	for range 2 {
		w.expect(<-done, http.StatusCreated, "")
	}
	ledgers.tenant = id.Service
	w.mustCreate(&w.red, "c", nil)
	w.expect(w.send(&w.blue, large), http.StatusCreated, "")
}

// A request whose body does not arrive in time is rejected, and its slot is free again.
func TestSlowBodies(t *testing.T) {
	w := newWorld(t, func(o *ingest.Options) { o.MaxInFlight = 1 })
	for _, path := range []string{
		eventsPath, eventsPath + "/batch", evaluatePath, accessPath, accessPath + "s", approvalsPath, approvalsPath + "/a/consume", approvalsPath + "/a/cancel",
		requestsPath, requestsPath + "/a/cancel",
		prefixes[0] + "/runs", prefixes[0] + "/runs/r/steps", prefixes[0] + "/runs/r/complete",
		prefixes[1] + "/runs", prefixes[1] + "/runs/r/steps", prefixes[1] + "/runs/r/complete",
	} {
		r := httptest.NewRequest(http.MethodPost, path, iotest.ErrReader(os.ErrDeadlineExceeded))
		r.Header.Set("Authorization", "Bearer "+w.red.token)
		a := httptest.NewRecorder()
		w.handler.ServeHTTP(a, r)
		if want := `{"error":"The body took too long to arrive"}`; a.Code != http.StatusRequestTimeout || a.Body.String() != want {
			t.Errorf("%s: got %d %s, want 408 %s", path, a.Code, a.Body, want)
		}
	}
	w.mustCreate(&w.red, "a", nil)
}

// Floods of refusals are slowed down, only for the organization or the strangers that cause them.
func TestRefusalsAreHeldBack(t *testing.T) {
	w := newWorld(t, func(o *ingest.Options) { o.MaxRefusals = 3 })
	synctest.Test(t, func(t *testing.T) {
		waited := func(token string) time.Duration {
			began := time.Now()
			r := httptest.NewRequest(http.MethodPost, eventsPath, strings.NewReader("{"))
			r.Header.Set("Authorization", "Bearer "+token)
			w.handler.ServeHTTP(httptest.NewRecorder(), r)
			return time.Since(began)
		}
		for name, token := range map[string]string{"organization": w.red.token, "strangers": "unknown"} {
			for i, want := range []time.Duration{0, 0, 0, time.Second} {
				if got := waited(token); got != want {
					t.Errorf("%s: refusal %d came after %v, want %v", name, i, got, want)
				}
			}
		}
	})
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	w := newWorld(t, func(o *ingest.Options) { o.Metrics = registry })
	w.mustCreate(&w.red, "a", nil)
	w.send(&w.red, w.envelope(&w.red, "a", nil))
	w.send(&w.blue, "{}")
	w.batch(&w.blue, ndjson(w.envelope(&w.blue, "a", nil), w.envelope(&w.blue, "b", nil), "{}"))
	w.post(evaluatePath, w.red.token, w.question(&w.red, nil))
	text := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(text, httptest.NewRequest("GET", "/", nil))
	for _, want := range []string{
		`agentledger_ingest_events_total{result="created"} 3`,
		`agentledger_ingest_events_total{result="replayed"} 1`,
		`agentledger_ingest_events_total{result="refused"} 2`,
		`agentledger_evaluations_total{decision="allow"} 1`,
		`agentledger_signature_verification_seconds_count 4`,
		`agentledger_ingest_in_flight 0`,
	} {
		if !strings.Contains(text.Body.String(), want+"\n") {
			t.Errorf("no %s in\n%s", want, text.Body)
		}
	}
}
