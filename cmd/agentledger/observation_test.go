package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/test/witnesstest"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// startHere starts a server in this process, which ends with the test.
func startHere(t *testing.T, change func(*config.Serve)) *server {
	t.Helper()
	c := testSettings(t.TempDir())
	c.MetricsListen = "127.0.0.1:0"
	if change != nil {
		change(&c)
	}
	s, err := startServer(t.Context(), c, config.Logging{LogLevel: "warn"}.NewLogger(t.Output()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stopServer(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// foundHere creates an organization.
func foundHere(t *testing.T, s *server, slug string) *worker {
	t.Helper()
	o, err := newOperator(s.mainURL(), s.identityURL())
	if err != nil {
		t.Fatal(err)
	}
	org, err := o.foundOrganization(t.Context(), s.platformSecret, map[string]any{"name": slug, "slug": slug, "admin_email": "ops@" + slug + ".example"})
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWorker(s.mainURL(), org, client.Retry{Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Dashboard and alerts use only metrics that a service has, the dashboard uses all of them, and the manual describes
// each. The services have every option: certificates, a directory, witnesses, a new master key, both engines.
func TestMetricsMatchDashboardAndAlerts(t *testing.T) {
	database, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { database.Stop() })
	s := startHere(t, nil)
	all := slices.Concat(registeredMetrics(t, s), registeredMetrics(t, startWithOptions(t)),
		registeredMetrics(t, startHere(t, func(c *config.Serve) {
			c.Storage, c.NodeListen, c.NodeURL = database.URL(), "127.0.0.1:0", "https://127.0.0.1:1"
		})))
	there := make(map[string]bool)
	for _, m := range all {
		there[m.name] = true
	}
	w := foundHere(t, s, "acme")
	sendOne(t, w)
	getText(t, s.mainURL()+"/v1/public/orgs/acme/transparency/head")
	getText(t, s.mainURL()+"/unknown")
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z0-9_]*)[{ ]`).FindAllStringSubmatch(getText(t, s.listeners.URL(metricsListener)+"/metrics"), -1) {
		name := partOfHistogram.ReplaceAllString(m[1], "")
		if there[name] = true; strings.HasPrefix(name, "agentledger_") && !registered(t, s)[name] {
			t.Errorf("%s is scraped but not registered", name)
		}
	}
	dashboard := queried(t, "../../deploy/dashboard.json")
	for name := range dashboard {
		if !there[name] {
			t.Errorf("dashboard: there is no metric %s", name)
		}
	}
	for name := range queried(t, "../../deploy/alerts.yaml") {
		if !there[name] {
			t.Errorf("alerts: there is no metric %s", name)
		}
	}
	for name := range there {
		if strings.HasPrefix(name, "agentledger_") && !dashboard[name] {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
	checkMetricsPage(t, all)
}

// startWithOptions starts a server with all optional parts.
func startWithOptions(t *testing.T) *server {
	t.Helper()
	first, err := startServer(t.Context(), testSettings(t.TempDir()), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	foundHere(t, first, "listing")
	if err := first.stopServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(first.settings.Data, "master.key")
	if err := os.Rename(key, key+".old"); err != nil {
		t.Fatal(err)
	}
	witnessed := witnessedBy(t, witnesstest.New(t, "x.example").PolicyLine("x")+"quorum x\n")
	s := startHere(t, func(c *config.Serve) {
		witnessed(c)
		c.Data, c.OlderMasterKeyFile, c.Directory, c.LogListContact = first.settings.Data, []string{key + ".old"}, "listing", "ops@log.test"
		c.PublicURL, c.DirectoryInterval = "https://log.test", time.Second
		c.Archive = "file://" + filepath.Join(t.TempDir(), "archive")
		c.TLSCert, c.TLSKey, _ = writeCertificate(t, t.TempDir(), 1)
	})
	for end := time.Now().Add(time.Minute); !registered(t, s)["agentledger_reseal_done"] && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond) // it is registered in the background
	}
	return s
}

var partOfHistogram = regexp.MustCompile(`_(bucket|sum|count)$`)

// queried returns the metrics that a file uses.
func queried(t *testing.T, file string) map[string]bool {
	t.Helper()
	asked := make(map[string]bool)
	for _, name := range regexp.MustCompile(`\b(?:agentledger|go|process)_[a-z0-9_]+`).FindAllString(readFile(t, file), -1) {
		asked[partOfHistogram.ReplaceAllString(name, "")] = true
	}
	if len(asked) == 0 {
		t.Errorf("%s uses no metric", file)
	}
	return asked
}

// registered returns the metrics of a service, including those without a value.
func registered(t *testing.T, s *server) map[string]bool {
	t.Helper()
	there := make(map[string]bool)
	for _, m := range registeredMetrics(t, s) {
		there[m.name] = true
	}
	return there
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func getText(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var b strings.Builder
	if _, err := bufio.NewReader(r.Body).WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Slow senders are disconnected, which frees their connections for others.
func TestSlowSendersAreDisconnected(t *testing.T) {
	s := startHere(t, func(c *config.Serve) {
		c.HeaderTimeout, c.BodyTimeout = 300*time.Millisecond, 600*time.Millisecond
		c.MaxInFlight, c.MaxInFlightOrganization = 1, 1
	})
	w := foundHere(t, s, "acme")
	for name, tc := range map[string]struct{ sent, want string }{
		"headers": {"POST /v1/ingest/events HTTP/1.1\r\nHost: x\r\n", "HTTP/1.1 408 Request Timeout"},
		"body": {"POST /v1/ingest/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + w.org.IngestKey.Secret +
			"\r\nContent-Length: 100\r\n\r\n{", "HTTP/1.1 408 Request Timeout"},
	} {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.mainURL(), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte(tc.sent)); err != nil {
			t.Fatal(err)
		}
		var answer strings.Builder
		if _, err := bufio.NewReader(c).WriteTo(&answer); err != nil { // ends when the connection does
			t.Errorf("%s: %v", name, err)
		}
		if got, _, _ := strings.Cut(answer.String(), "\r\n"); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
	body, err := w.signer.SignEvent(client.Event{TraceID: "t", ActorPrincipal: "p", ActionKind: "tool_call", Decision: id.Allow})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.Send(t.Context(), body); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// Idle connections are closed in favor of others.
func TestIdleConnectionsAreClosed(t *testing.T) {
	s := startHere(t, func(c *config.Serve) { c.MaxConnections = 2 })
	for range 5 {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.mainURL(), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if got := getText(t, s.mainURL()+"/livez"); got != "ok\n" {
		t.Errorf("got %q", got)
	}
}

// Traces go to the configured receiver, with the request's id and without its content.
func TestTracesOfAnEvent(t *testing.T) {
	spans := make(chan string, 100)
	receiver := http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		var b strings.Builder
		_, _ = bufio.NewReader(text).WriteTo(&b)
		spans <- b.String()
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go receiver.Serve(l)
	defer receiver.Close()
	s := startHere(t, func(c *config.Serve) { c.TraceEndpoint, c.TraceRatio = "http://"+l.Addr().String(), 1 })
	w := foundHere(t, s, "acme")
	body, err := w.signer.SignEvent(client.Event{TraceID: "t", ActorPrincipal: "secret-principal", ActionKind: "tool_call", Decision: id.Allow})
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := w.client.Send(t.Context(), body)
	if err != nil {
		t.Fatal(err)
	}
	getText(t, s.mainURL()+"/v1/public/orgs/acme/verify/"+string(receipt.EventID))
	if err := s.service.watch.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(spans)
	var all strings.Builder
	for text := range spans {
		all.WriteString(text)
	}
	for _, want := range []string{"POST /v1/ingest/events", "read event", "append", "commit", "inclusion proof", "request_id"} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("there is no span %q", want)
		}
	}
	if strings.Contains(all.String(), "secret") || strings.Contains(all.String(), string(receipt.EventID)) {
		t.Error("a client's value is in a span")
	}
}
