package monitor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// Failed checks are repeated sooner, and then at growing intervals up to Interval.
func TestLoop(t *testing.T) {
	broken, finding := errors.New("unreachable"), error(&Finding{Kind: Fork})
	results := []error{nil, broken, broken, broken, broken, broken, nil, broken, fmt.Errorf("wrapped: %w", finding), nil}
	var waits []time.Duration
	loop := Loop{Interval: 8 * time.Second, Backoff: time.Second, pause: func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}}
	n := 0
	err := loop.Run(t.Context(), func(context.Context) error { n++; return results[n-1] })
	if !errors.Is(err, finding) || n != 9 {
		t.Fatalf("got %v after %d checks", err, n)
	}
	for i, most := range []time.Duration{8, 1, 2, 4, 8, 8, 8, 1} {
		if most *= time.Second; waits[i] > most || waits[i] < most/2 {
			t.Errorf("wait %d: got %s, want at most %s", i, waits[i], most)
		}
	}
}

func TestLoopStops(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	err := Loop{Interval: time.Hour}.Run(ctx, func(context.Context) error { stop(); return errors.New("unreachable") })
	if err != nil {
		t.Errorf("got %v", err)
	}
}

func TestMetrics(t *testing.T) {
	var m Metrics
	red := Report{Origin: "log.example/o/red", CheckedAt: 1_795_176_000_500, TreeSize: 1e15, NewEntries: 7, Sources: []SourceReport{
		{URL: "http://mirror", TreeSize: 6}, {URL: "http://witness", Error: "time-out"},
	}}
	m.Observe(red, nil)
	red.CheckedAt += 1000
	red.Cosignatures = []verify.Cosignature{{Name: "w1.example", Time: 1_795_176_000_000},
		{Name: "w1.example", Time: 4_102_444_800_000, InFuture: true}}
	asOf := id.Instant(1_795_175_000_000)
	red.AsOf = &asOf
	hidden := id.Index(2)
	red.HiddenEntries = &hidden
	since := red.CheckedAt - 4500
	red.Quorum = &QuorumReport{TreeSize: 5, Waiting: 3, WaitingSince: &since}
	m.Observe(red, errors.New("time-out"))
	m.Observe(Report{Origin: "strange\"\\\norigin"}, &Finding{Kind: Fork})

	answer := httptest.NewRecorder()
	m.ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	got := answer.Body.String()
	for _, line := range []string{
		`agentledger_monitor_tree_size{origin="log.example/o/red"} 1000000000000000`,
		`agentledger_monitor_last_check_timestamp_seconds{origin="log.example/o/red"} 1795176001.5`,
		`agentledger_monitor_last_consistent_timestamp_seconds{origin="log.example/o/red"} 1795176000.5`,
		`agentledger_monitor_entries_total{origin="log.example/o/red"} 14`,
		`agentledger_monitor_checks_total{origin="log.example/o/red",result="consistent"} 1`,
		`agentledger_monitor_checks_total{origin="log.example/o/red",result="unknown"} 1`,
		`agentledger_monitor_checks_total{origin="strange\"\\\norigin",result="fork"} 1`,
		`agentledger_monitor_source_up{origin="log.example/o/red",source="http://witness"} 0`,
		`agentledger_monitor_hidden_entries{origin="log.example/o/red"} 2`,
		`agentledger_monitor_view_timestamp_seconds{origin="log.example/o/red"} 1795175000`,
		`agentledger_monitor_future_cosignatures{origin="log.example/o/red"} 1`,
		`agentledger_monitor_quorum_tree_size{origin="log.example/o/red"} 5`,
		`agentledger_monitor_quorum_waiting_seconds{origin="log.example/o/red"} 4.5`,
		`agentledger_monitor_source_tree_size{origin="log.example/o/red",source="http://mirror"} 6`,
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("no %s in\n%s", line, got)
		}
	}
	if !strings.Contains(got, `cosignature_timestamp_seconds{origin="log.example/o/red",witness="w1.example"} 1795176000`+"\n") {
		t.Errorf("no cosignature in\n%s", got)
	}
	checkAlerts(t, got)
	problems, err := promlint.New(bytes.NewReader(m.Text())).Lint() // parses it as Prometheus does
	if err != nil || len(problems) > 0 {
		t.Errorf("got %v, %v", problems, err)
	}
}

// checkAlerts checks that every metric of ours in the alert rules and the manual exists.
func checkAlerts(t *testing.T, figures string) {
	t.Helper()
	for _, name := range []string{"../deploy/monitor-alerts.yaml", "../docs/audit/monitor.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`\bagentledger_monitor_[a-z_]+`).FindAllString(string(text), -1)
		if len(names) == 0 {
			t.Errorf("%s names no metric", name)
		}
		for _, metric := range names {
			if !strings.Contains(figures, "# TYPE "+metric+" ") {
				t.Errorf("%s: there is no metric %s", name, metric)
			}
		}
	}
}
