package web_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// maxHelp and maxHelpSent are the maximum sizes of a page of the help in bytes, as it is and compressed.
const maxHelp, maxHelpSent = 512 << 10, 48 << 10

var helpPages = []string{"/help", "/help/api", "/help/runbooks", "/help/api/ingest", "/help/api/public", "/help/api/pages", "/help/api/console",
	"/help/api/identity", "/help/api/service"}

// The links of the help lead to pages and sections that are there, and its pages are small.
func TestHelp(t *testing.T) {
	w := newWorld(t)
	anchors, bodies := make(map[string]bool), make(map[string]string)
	anchor := regexp.MustCompile(` id="([^"]+)"`)
	for _, target := range helpPages {
		body := w.page(target, http.StatusOK).Body.String()
		sent := w.page(target, http.StatusOK, "Accept-Encoding: gzip")
		if sent.Header().Get("Content-Encoding") != "gzip" || sent.Body.Len() > maxHelpSent || len(body) > maxHelp {
			t.Errorf("%s has %d bytes, and %d in gzip", target, len(body), sent.Body.Len())
		}
		etag := sent.Header().Get("ETag")
		w.page(target, http.StatusNotModified, "If-None-Match: "+etag, "Accept-Encoding: gzip")
		w.page(target, http.StatusOK, "If-None-Match: "+etag) // the tag of another coding
		if head := w.ask(http.MethodHead, target, "Accept: "+browsers); head.Code != http.StatusOK || head.Body.Len() != 0 {
			t.Errorf("HEAD %s: got %d with %d bytes", target, head.Code, head.Body.Len())
		}
		bodies[target] = body
		for _, found := range anchor.FindAllStringSubmatch(body, -1) {
			if anchors[target+"#"+found[1]] {
				t.Errorf("%s has #%s twice", target, found[1])
			}
			anchors[target+"#"+found[1]] = true
		}
	}
	for target, body := range bodies {
		for _, found := range regexp.MustCompile(`href="(/help[^"]*|/check[^"]*|/clients[^"]*|/openapi[^"]*|#[^"]+)"`).FindAllStringSubmatch(body, -1) {
			link := found[1]
			if strings.HasPrefix(link, "#") {
				link = target + link
			}
			path, fragment, _ := strings.Cut(link, "#")
			if fragment != "" && !anchors[link] {
				t.Errorf("%s links to %s, which is not there", target, link)
			}
			if bodies[path] == "" && path != "/openapi.json" {
				w.page(path, http.StatusOK)
			}
		}
	}
	if body := bodies["/help/api/console"]; strings.Contains(body, `<table class="rows">`) || !strings.Contains(body, `<table class="rows ref">`) {
		t.Error("links in tables of the reference are not underlined")
	}
	w.page("/help/api/none", http.StatusNotFound)
	w.page("/help?x=1", http.StatusUnprocessableEntity)
	if !strings.Contains(w.page("/log/red", http.StatusOK).Body.String(), `<a href="/help">How to verify</a>`) {
		t.Error("the footer of a log does not link the help")
	}
}

// The page for readers is short, and its first command is within its first hundred words.
func TestWordsOfHelp(t *testing.T) {
	w := newWorld(t)
	body := w.page("/help", http.StatusOK).Body.String()
	_, content, _ := strings.Cut(body, `<p class="lead">`)
	content, _, _ = strings.Cut(content, "</main>")
	words := strings.Fields(regexp.MustCompile(`<[^>]+>`).ReplaceAllString(content, " "))
	if len(words) < 500 || len(words) > 700 {
		t.Errorf("got %d words", len(words))
	}
	if !strings.Contains(strings.Join(words[:100], " "), "aps verify november.zip") {
		t.Error("the first command comes late")
	}
}
