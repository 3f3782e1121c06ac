package log_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// scrape returns the metrics as a monitor reads them.
func scrape(g prometheus.Gatherer) string {
	w := httptest.NewRecorder()
	promhttp.HandlerFor(g, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	return w.Body.String()
}

// The metrics cover all ledgers together, and name none.
func TestMetrics(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	registry := prometheus.NewRegistry()
	w.ledgers.Close()
	w.open(log.Options{Metrics: registry})
	w.mustAppend(red, "a", "b", "c")
	w.mustAppend(blue, "a")
	w.reverify(func() bool { return w.reverified(red).To == 3 && w.reverified(blue).To == 1 })
	text := scrape(registry)
	for _, want := range []string{
		`agentledger_heads_published_total 4`,
		`agentledger_append_seconds_count 4`,
		`agentledger_queue_events 0`,
		`agentledger_queue_limit_events{bound="organization"} 4096`,
		`agentledger_queue_overload_total{bound="all"} 0`,
		`agentledger_resident_ledgers 2`,
		`agentledger_reverified_events_total 4`,
		`agentledger_faulty_ledgers{level="frozen"} 0`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	for _, secret := range []string{w.state(red).Identity().Organization.String(), string(w.state(red).Identity().Origin)} {
		if strings.Contains(text, secret) {
			t.Errorf("an organization is named: %s", secret)
		}
	}
}
