package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/chromium"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/web"
)

// Only the badge may be framed.
func TestBadgeMayBeFramed(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "one", nil)
	w.serve(nil, func(o *web.Options) { o.Names = names{} })
	for _, target := range []string{"/log/red/badge", "/log/red/badge?theme=light", "/log/red/badge?theme=dark"} {
		answer := w.ask(http.MethodGet, target, "Accept: "+browsers)
		policy := answer.Header().Get("Content-Security-Policy")
		if answer.Code != http.StatusOK || !strings.Contains(policy, "frame-ancestors *;") || !strings.Contains(policy, "script-src 'self'") ||
			!strings.Contains(answer.Body.String(), "Red &amp; Sons") {
			t.Errorf("%s: got %d, %s, %s", target, answer.Code, policy, answer.Body)
		}
		if head := w.ask(http.MethodHead, target, "Accept: "+browsers); head.Code != http.StatusOK || head.Body.Len() > 0 {
			t.Errorf("%s: HEAD: got %d, %s", target, head.Code, head.Body)
		}
		same := "If-None-Match: " + answer.Header().Get("ETag")
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			if got := w.ask(method, target, "Accept: "+browsers, same); got.Code != http.StatusNotModified {
				t.Errorf("%s: %s of what the reader has: got %d", target, method, got.Code)
			}
		}
		for _, other := range []string{"proved", "verified", `"ok"`, "Set-Cookie"} {
			if strings.Contains(answer.Body.String(), other) {
				t.Errorf("%s: the service says %q", target, other)
			}
		}
	}
	w.page("/log/red/badge?theme=pink", http.StatusUnprocessableEntity) // checks that pages are not framed
	w.page("/log/none/badge", http.StatusNotFound)
	w.page("/log/red", http.StatusOK)
}

// On another website the badge verifies an honest log, and is not green for a lying one.
func TestBadgeInChromium(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "one", nil)
	service := &tamper{next: w.handler}
	server := httptest.NewServer(service)
	defer server.Close()
	website := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		answer.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(answer, `<!doctype html><title>Acme</title><iframe src="%s%s" width="420" height="80"></iframe>`, server.URL, r.URL.Query().Get("page"))
	}))
	defer website.Close()
	b := chromium.New(t)
	badge := func() (shown string) {
		t.Helper()
		b.Open(website.URL + "/?page=/log/red/badge")
		b.EnterFrame("iframe")
		if err := b.Run(`
			while (document.getElementById("checked")?.dataset.done !== "yes") await new Promise((next) => setTimeout(next, 5));
			const outcome = document.getElementById("outcome");
			return document.querySelector("header").dataset.state + ": " + outcome.textContent;`, &shown); err != nil {
			t.Fatal(err)
		}
		return shown
	}
	want := func(what, begin string) {
		t.Helper()
		if got := badge(); !strings.HasPrefix(got, begin) {
			t.Errorf("%s: got %q, want %q", what, got, begin)
		}
	}
	var small []byte // the head of one entry
	service.change = func(path string, body []byte) []byte {
		if strings.HasSuffix(path, "/head") {
			small = body
		}
		return body
	}
	want("first visit", "ok: 1 entry, verified by your browser")
	service.change = nil
	w.append(ledgertest.Red, id.DiscloseFull, "two", nil)
	want("second visit", "ok: 2 entries, verified by your browser")
	var late atomic.Bool
	service.change = func(path string, body []byte) []byte {
		if strings.HasSuffix(path, "/head") && !late.Swap(true) {
			return small
		}
		return body
	}
	want("a late copy of the head, once", "ok: 2 entries, verified by your browser")
	if messages := b.Messages(); len(messages) > 0 {
		t.Errorf("the console says %q", messages)
	}
	service.change = replaceText("/transparency/head", `"tree_size":2`, `"tree_size":3`)
	want("forged size", "fail: Not verified: ")
	service.change = func(path string, body []byte) []byte {
		if strings.HasSuffix(path, "/head") {
			return []byte("{}")
		}
		return body
	}
	want("no head", "none: Your browser could not check")
	other := newWorld(t)
	other.append(ledgertest.Red, id.DiscloseFull, "two", nil)
	other.append(ledgertest.Red, id.DiscloseFull, "three", nil)
	service.change, service.next = nil, other.handler
	want("another log", "fail: Not verified: ")

	service.next = w.handler
	b.Messages()
	b.Open(website.URL + "/?page=/log/red")
	if messages := strings.Join(b.Messages(), " "); !strings.Contains(messages, "frame-ancestors") {
		t.Errorf("another page is framed: the console says %q", messages)
	}
}
