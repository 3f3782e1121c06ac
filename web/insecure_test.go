package web_test

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/chromium"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
)

// Browsers provide no cryptography on pages over plain http from another machine. Each page that verifies something
// states that, and shows no script error.
func TestPagesWithoutTLS(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "one", nil)
	server := httptest.NewServer(w.handler)
	defer server.Close()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	b := chromium.New(t)
	for _, path := range []string{redEvent + "one", "/log/red", "/check"} {
		b.Open("http://" + chromium.PlainHost + ":" + u.Port() + path)
		if err := b.Run(`while (!document.querySelector("[data-done]")) await new Promise((next) => setTimeout(next, 5));`, nil); err != nil {
			t.Fatal(err)
		}
		if text := b.ShownText(); !strings.Contains(text, "only on pages over https") || strings.Contains(text, "Cannot read") || strings.Contains(text, "could not be made") {
			t.Errorf("%s: %s", path, text)
		}
	}
}
