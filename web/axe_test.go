//go:build axe

package web_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/chromium"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/web"
)

// axe-core reports no violation on any page, light and dark, with all sections expanded, and no page is wider than a
// phone. `make test-pages` installs axe-core.
func TestAccessibility(t *testing.T) {
	axe := chromium.Axe(t, ".")
	w := newWorld(t)
	w.serve(nil, func(o *web.Options) {
		o.Logs = &list{directory: "red", logs: []web.ListedLog{{Path: ledgertest.Organization(ledgertest.Red).String(), Size: 3}}}
	})
	w.append(ledgertest.Red, id.DiscloseFull, "erased", nil)
	w.erase(ledgertest.Red, 1)
	for _, name := range []string{"one", "two"} {
		w.append(ledgertest.Red, id.DiscloseFull, name, nil)
	}
	w.append(ledgertest.Blue, id.DiscloseCommitment, "one", nil)
	server := httptest.NewServer(w.handler)
	defer server.Close()
	b := chromium.New(t)
	for _, path := range []string{"/", "/logs", "/help", "/help/api", "/help/api/ingest", "/help/runbooks", "/clients", "/check", "/log/red", "/log/blue", "/log/red/agent/helper-red", redEvent + "one", redEvent + "erased",
		"/v1/public/orgs/blue/verify/one", redEvent + "none"} {
		b.Open(server.URL + path)
		b.WantAccessible(axe, path)
	}
}

// The same for warnings on a log's page: an old head, a rollback, a key that the browser does not know, and a changed
// witness policy.
func TestAccessibilityOfWarnings(t *testing.T) {
	axe := chromium.Axe(t, ".")
	w := newWorld(t)
	for _, name := range []string{"one", "two"} {
		w.append(ledgertest.Red, id.DiscloseFull, name, nil)
	}
	head := w.ask("GET", "/v1/public/orgs/red/transparency/head").Body.Bytes()
	w.append(ledgertest.Red, id.DiscloseFull, "three", nil)
	var ages []time.Duration
	cosigned := cosignedBy(t, w, &ages)
	service := &tamper{next: w.handler, change: cosigned}
	server := httptest.NewServer(service)
	defer server.Close()
	b := chromium.New(t)
	check := func(name, outcome string) {
		t.Helper()
		if marks := visit(t, b, server.URL+"/log/red"); !strings.HasPrefix(marks["outcome"], outcome) {
			t.Errorf("%s: got %v", name, marks)
		}
		b.WantAccessible(axe, "log-"+name)
	}
	ages = []time.Duration{time.Minute, time.Minute}
	check("fresh", "ok: Proved")
	ages = []time.Duration{-24 * time.Hour, 5 * time.Hour, 5 * time.Hour}
	check("old", "ok: Proved, as far as the checks below state, under the key "+w.State(t, ledgertest.Red).VerifierKey().Hash().String()+" that this browser remembers, but this view may be out of date")
	service.change = func(path string, body []byte) []byte {
		if strings.HasSuffix(path, "/head") {
			body = head
		}
		return cosigned(path, body)
	}
	check("rollback", "fail: Not proved: rollback: ")
	service.change, service.next = nil, newWorld(t).handler
	check("unknown-key", "fail: Not proved: ")
}
