//go:build axe

package web_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/chromium"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
)

// axe-core finds nothing wrong with any page, light and dark, with all parts unfolded, and no page
// is wider than a phone. `make test-pages` installs axe-core.
func TestAccessibility(t *testing.T) {
	axe, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "erased", nil)
	w.erase(ledgertest.Red, 1)
	for _, name := range []string{"one", "two"} {
		w.append(ledgertest.Red, id.DiscloseFull, name, nil)
	}
	w.append(ledgertest.Blue, id.DiscloseCommitment, "one", nil)
	server := httptest.NewServer(w.handler)
	defer server.Close()
	b := chromium.New(t)
	for _, scheme := range []string{"light", "dark"} {
		b.Emulate("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{
			{"name": "prefers-color-scheme", "value": scheme}}})
		for _, width := range []int{360, 1200} {
			b.Emulate("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false})
			for _, path := range []string{"/", "/check", "/log/red", "/log/blue", "/log/red/agent/helper-red", redEvent + "one", redEvent + "erased",
				"/v1/public/orgs/blue/verify/one", redEvent + "none"} {
				b.Open(server.URL + path)
				checkAccess(t, b, string(axe), fmt.Sprintf("%s %s %d", path, scheme, width))
			}
		}
	}
}

// checkAccess runs axe-core in the page that is open.
func checkAccess(t *testing.T, b *chromium.Browser, axe, what string) {
	t.Helper()
	var got struct {
		Rules int
		Wide  bool
		Dark  bool
		Wrong []string
	}
	if err := b.Run(axe+`
		const page = document.getElementById("checked");
		while (page && page.dataset.done !== "yes") await new Promise((next) => setTimeout(next, 5));
		for (const details of document.querySelectorAll("details")) details.open = true;
		const found = await window.axe.run(document, {resultTypes: ["violations"]});
		return {
			rules: found.passes.length, wide: document.documentElement.scrollWidth > innerWidth,
			dark: matchMedia("(prefers-color-scheme: dark)").matches,
			wrong: found.violations.flatMap((v) => v.nodes.map((n) => v.id + " " + n.target)),
		};`, &got); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if len(got.Wrong) > 0 || got.Rules < 10 || got.Wide || got.Dark != strings.Contains(what, " dark ") {
		t.Errorf("%s: %d rules passed, wider than the window: %v, dark: %v, wrong: %s", what, got.Rules, got.Wide, got.Dark, strings.Join(got.Wrong, "; "))
	}
}
