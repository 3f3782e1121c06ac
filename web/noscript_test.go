package web_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/chromium"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
)

// A browser without JavaScript shows all that the service knows, and names what only a program can compute.
func TestPagesWithoutScripts(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "one", map[string]any{"agent_id": "helper-red"})
	w.append(ledgertest.Blue, id.DiscloseFull, "two", nil)
	server := httptest.NewServer(w.handler)
	defer server.Close()
	b := chromium.New(t)
	b.Emulate("Emulation.setScriptExecutionDisabled", map[string]any{"value": true})
	for path, want := range map[string][]string{
		"/":                               {"Find an event", "Open the event"},
		"/help":                           {"How to verify", "aps verify november.zip"},
		"/help/runbooks":                  {"AgentledgerLedgerFrozen", "fsfreeze --unfreeze DIR"},
		"/clients":                        {"npm install https://log.example/clients/agentledger-client-"},
		"/check":                          {"The checks need JavaScript", "aps verify"},
		"/log/red":                        {"Latest acts", "acme.orders.read", "The checks need JavaScript", "aps monitor --url"},
		redEvent + "one":                  {"What was recorded", "acme.orders.read", "\"secret\": \"one\"", "The checks need JavaScript", "Not checked yet."},
		"/log/red/agent/helper-red":       {"key_new", "active", "revoked since"},
		"/find?log=red&event=0":           {"What was recorded", "acme.orders.read"}, // the form as it is sent
		"/find?log=red&event=none":        {"To the home of the service"},
		"/v1/public/orgs/blue/verify/two": {"What was recorded", "\"secret\": \"two\""},
	} {
		b.Open(server.URL + path)
		text := b.ShownText()
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%s does not show %q: %s", path, part, text)
			}
		}
		if strings.Contains(text, "proved") && path != "/log/red/agent/helper-red" && !strings.HasPrefix(path, "/help") {
			t.Errorf("%s says that something is proved: %s", path, text)
		}
	}
}
