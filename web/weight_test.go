package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/chromium"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
)

// maxWeight is the maximum number of bytes that a browser loads for an event's page.
const maxWeight = 68 << 10

// An event's page, its assets and the documents that it reads are small, and the page lists every module that its
// script loads.
func TestWeightOfEventPage(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"one", "two", "three"} {
		w.append(ledgertest.Red, id.DiscloseFull, name, nil)
	}
	server := httptest.NewServer(w.handler)
	defer server.Close()
	b := chromium.New(t)
	visit(t, b, server.URL+redEvent+"one")
	b.Requests()
	var firstCheck struct{ Start, Load float64 } // in milliseconds
	if err := b.Run(`
		const [mark] = performance.getEntriesByName("first-check"), [page] = performance.getEntriesByType("navigation");
		return {start: mark.startTime, load: page.loadEventEnd};`, &firstCheck); err != nil {
		t.Fatal(err)
	}
	visit(t, b, server.URL+redEvent+"two") // also requests a consistency proof
	page, weight := w.page(redEvent+"two", http.StatusOK).Body.String(), 0
	requests := slices.DeleteFunc(b.Requests(), func(u string) bool { return !strings.HasPrefix(u, server.URL+"/") })
	slices.Sort(requests)
	for _, u := range slices.Compact(requests) {
		target := strings.TrimPrefix(u, server.URL)
		answer := w.ask(http.MethodGet, target, "Accept: "+browsers, "Accept-Encoding: gzip")
		parsed, err := url.Parse(u)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(parsed.Path, ".js") && !strings.Contains(page, `"`+parsed.Path+`"`) {
			t.Errorf("%s is loaded, and the page does not name it", parsed.Path)
		}
		weight += answer.Body.Len()
	}
	if weight > maxWeight || weight < 20<<10 {
		t.Errorf("the page weighs %d bytes, want at most %d", weight, maxWeight)
	}
	t.Logf("%d requests, %d bytes, first check mark %.0f ms after the start of the navigation, loaded after %.0f ms",
		len(requests), weight, firstCheck.Start, firstCheck.Load)
}
