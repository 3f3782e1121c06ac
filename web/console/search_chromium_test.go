package console_test

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// slowText is part of events that take long to search, because the case of each of its characters is looked up in a table.
const slowText = "ĀĔĬŐŰ"

// sendSlowEvents stores events in which a search of one page does not reach the first ones. The first two contain "kürbis".
func sendSlowEvents(s *servicetest.Service) {
	const n, size = 520, 96 << 10 // events, bytes
	text := strings.Repeat(slowText, size/len(slowText))
	for i := range n {
		payload := map[string]any{"text": text}
		if i < 2 {
			payload["fruit"] = "Kürbis"
		}
		s.Red.Send(fmt.Sprint("e", i), map[string]any{"payload": payload})
	}
}

var further = regexp.MustCompile(`<a id="further" rel="next" class="btn s" href="([^"]+)">Look further back</a>`)

// A text search continues by links, and by itself in a browser with scripts until it is stopped, is complete, or has filled the page.
func TestLongSearchInChromium(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	ann.Call(http.MethodPost, "/v1/console/policies", map[string]any{"policy_id": "all", "name": "All", "default": "allow", "rules": []any{}}, nil)
	ann.Call(http.MethodPost, "/v1/console/policies/all/activate", nil, nil) // so that the events are acts
	sendSlowEvents(s)
	const search = "/console/events?q=K%C3%BCrbis"

	looked := regexp.MustCompile(`Looked back to <time [^>]*>[^<]*</time>, [1-9][0-9]* of 5[0-9]+ events\.`)
	page, pages, found := ann.Get(search), 1, []string{}
	for ; pages < 100; pages++ {
		found = append(found, strings.Fields(listed(page.Body))...)
		link := further.FindStringSubmatch(page.Body)
		if link == nil {
			break
		}
		if !looked.MatchString(page.Body) || strings.Contains(page.Body, "data-follow") {
			t.Errorf("page %d does not state how far it looked", pages)
		}
		page = ann.Get(html.UnescapeString(link[1]))
	}
	page.Want(t, "the last page", http.StatusOK, "The search is complete.")
	if got := strings.Join(found, " "); got != "e1 e0" || pages < 2 {
		t.Fatalf("got %q on %d pages", got, pages)
	}
	t.Logf("%d pages", pages)

	b := s.Browser()
	b.Become(ann)
	b.Visit(search)
	b.Must(`document.getElementById("search-button").click();`, nil)
	await(t, b, "#search-news", "Stopped. 0 events found.")
	await(t, b, "#search", "Looked back to")
	b.Must(`document.getElementById("search-button").click();`, nil)
	await(t, b, "#search", "The search is complete.")
	await(t, b, "#search-news", "2 events found.")
	var rows []string
	b.Must(`return [...document.querySelectorAll("#found tbody .k a")].map((a) => a.title)`, &rows)
	if strings.Join(rows, " ") != "e1 e0" {
		t.Errorf("got the events %q", rows)
	}

	b.Visit(search + "&limit=1") // the page is full
	await(t, b, "#further", "Next page")
	var next string
	b.Must(`return document.getElementById("further").href`, &next)
	if !strings.Contains(next, "limit=1") || strings.Contains(next, "limit=0") {
		t.Errorf("the next page is %s", next)
	}
	b.Press("#further")
	await(t, b, "#further", "Next page") // whether there are more is not known yet
	await(t, b, "#found tbody", "acme")
	b.Press("#further")
	await(t, b, "#search", "The search is complete.")

	b.Visit("/console/activity?q=K%C3%BCrbis")
	await(t, b, "#search", "The search is complete.")
	await(t, b, "#search-news", "2 acts found.")
	b.Must(`return [...document.querySelectorAll("#found tbody .k a")].map((a) => a.href.split("/").at(-1).split("?")[0])`, &rows)
	if strings.Join(rows, " ") != "e1 e0" {
		t.Errorf("got the acts %q", rows)
	}

	b.Emulate("Emulation.setScriptExecutionDisabled", map[string]any{"value": true})
	b.Open(s.URL + search)
	if text := b.ShownText(); !strings.Contains(text, "Look further back") || strings.Contains(text, "Stop") {
		t.Errorf("without scripts the page shows %s", text)
	}
	b.WantQuiet()
}
