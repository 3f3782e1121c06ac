package web_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/chromium"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
)

// waitForMarks resolves to the state and words of each check after the page has finished its checks.
const waitForMarks = `
	const page = document.getElementById("checked");
	while (page.dataset.done !== "yes") await new Promise((next) => setTimeout(next, 5));
	const marks = {};
	for (const item of document.querySelectorAll(".checks > li")) {
		marks[item.id.slice("check-".length)] = item.dataset.state + ": " + item.querySelector(".verdict").textContent;
	}
	const outcome = document.getElementById("outcome");
	marks.outcome = outcome.dataset.state + ": " + outcome.textContent;
	return marks;`

// visit opens an event's page and returns its marks.
func visit(t *testing.T, b *chromium.Browser, url string) (marks map[string]string) {
	t.Helper()
	b.Open(url)
	if err := b.Run(waitForMarks, &marks); err != nil {
		t.Fatal(err)
	}
	return marks
}

// wantMarks compares marks with expected prefixes.
func wantMarks(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for name, begin := range want {
		if !strings.HasPrefix(got[name], begin) {
			t.Errorf("%s: %s is %q, want %q", what, name, got[name], begin)
		}
	}
}

// wantQuiet fails if there were requests to other hosts or console messages.
func wantQuiet(t *testing.T, b *chromium.Browser, own string) {
	t.Helper()
	requests := b.Requests()
	foreign := slices.DeleteFunc(slices.Clone(requests), func(u string) bool {
		// The initial empty tab loads pages and pictures of the browser itself, which need no network.
		return strings.HasPrefix(u, own+"/") || strings.HasPrefix(u, "chrome://") || strings.HasPrefix(u, "data:")
	})
	if len(foreign) > 0 || len(requests) == 0 {
		t.Errorf("got %d requests, to other hosts %q", len(requests), foreign)
	}
	if got := b.Messages(); len(got) > 0 {
		t.Errorf("the console says %q", got)
	}
}

// tamper changes the answers to requests for JSON and texts.
type tamper struct {
	next   http.Handler
	change func(path string, body []byte) []byte // nil changes nothing
}

// ServeHTTP implements http.Handler.
func (c *tamper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.change == nil || !strings.HasPrefix(r.URL.Path, "/v1/public/") || strings.Contains(r.Header.Get("Accept"), "text/html") {
		c.next.ServeHTTP(w, r)
		return
	}
	r.Header.Del("If-None-Match")
	answer := httptest.NewRecorder()
	c.next.ServeHTTP(answer, r)
	body := c.change(r.URL.Path, answer.Body.Bytes())
	w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
	w.WriteHeader(answer.Code)
	_, _ = w.Write(body)
}

func replaceText(part, old, with string) func(string, []byte) []byte {
	return func(path string, body []byte) []byte {
		if strings.Contains(path, part) {
			return []byte(strings.Replace(string(body), old, with, 1))
		}
		return body
	}
}

// The marks are correct in a real browser, both for an honest log and for a lying one.
func TestMarksInChromium(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"erased", "one", "two", "three"} {
		w.append(ledgertest.Red, id.DiscloseFull, name, nil)
	}
	w.erase(ledgertest.Red, 1)
	w.append(ledgertest.Red, id.DiscloseCommitment, "commitment", nil)
	w.append(ledgertest.Blue, id.DiscloseFull, "one", nil)
	service := &tamper{next: w.handler}
	server := httptest.NewServer(service)
	defer server.Close()
	b, page := chromium.New(t), server.URL+redEvent

	all := map[string]string{"envelope": "ok: proved", "signature": "ok: proved", "record": "ok: proved", "chain": "ok: proved",
		"inclusion": "ok: proved", "checkpoint": "ok: proved", "witnesses": "none: no policy asks for any"}
	with := func(changes map[string]string) map[string]string {
		changed := map[string]string{}
		for _, m := range []map[string]string{all, changes} {
			for k, v := range m {
				changed[k] = v
			}
		}
		return changed
	}
	wantMarks(t, "first visit", visit(t, b, page+"one"), with(map[string]string{"consistency": "none: first visit", "outcome": "ok: Proved"}))
	wantMarks(t, "second visit", visit(t, b, page+"two"), with(map[string]string{"consistency": "ok: extends", "outcome": "ok: Proved"}))
	w.append(ledgertest.Red, id.DiscloseFull, "newer", nil)
	wantMarks(t, "larger tree", visit(t, b, page+"newer"), with(map[string]string{"consistency": "ok: extends", "outcome": "ok: Proved"}))
	wantMarks(t, "another log", visit(t, b, server.URL+"/v1/public/orgs/blue/verify/one"), with(map[string]string{"consistency": "none: first visit"}))
	wantMarks(t, "erased", visit(t, b, page+"erased"), with(map[string]string{"envelope": "gone: can't be checked: the envelope was erased on ", "outcome": "ok: Proved"}))
	wantMarks(t, "commitment", visit(t, b, page+"commitment"), map[string]string{"record": "none: not disclosed", "signature": "none: not disclosed",
		"inclusion": "ok: proved", "outcome": "ok: Proved"})
	var drawn int
	if err := b.Run(`return document.querySelectorAll("svg.wide .sib").length`, &drawn); err != nil || drawn == 0 {
		t.Errorf("the picture has %d rings, %v", drawn, err)
	}
	wantQuiet(t, b, server.URL)

	service.change = replaceText("/verify/", `\"effective\":\"allow\"`, `\"effective\":\"deny\"`)
	wantMarks(t, "forged record", visit(t, b, page+"two"), map[string]string{"record": "fail: wrong: record: record and what the entry commits to",
		"inclusion": "ok: proved", "consistency": "none: not compared", "outcome": "fail: Not proved: "})
	service.change = replaceText("/verify/", `\"secret\":\"two\"`, `\"secret\":\"six\"`)
	wantMarks(t, "forged envelope", visit(t, b, page+"two"), map[string]string{"envelope": "fail: wrong: envelope: ", "record": "ok: proved", "outcome": "fail: Not proved: "})
	service.change = replaceText("/verify/", `"event_id":"two"`, `"event_id":"one"`)
	wantMarks(t, "another event", visit(t, b, page+"two"), map[string]string{"outcome": "fail: "})

	// a service that restarts the log with another key and another tree
	other := newWorld(t)
	other.append(ledgertest.Red, id.DiscloseFull, "two", nil)
	service.change, service.next = nil, other.handler
	wantMarks(t, "wrong key", visit(t, b, page+"two"), map[string]string{"checkpoint": "fail: signed by the key ",
		"consistency": "none: not compared", "outcome": "fail: Not proved: signed by the key "})
}

// A tree that does not extend the tree that this browser saw is a fork, even if the log's key signed both.
func TestForkInChromium(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"one", "two", "three"} {
		w.append(ledgertest.Red, id.DiscloseFull, name, nil)
	}
	service := &tamper{next: w.handler}
	server := httptest.NewServer(service)
	defer server.Close()
	b, page := chromium.New(t), server.URL+redEvent
	visit(t, b, page+"one")
	w.append(ledgertest.Red, id.DiscloseFull, "four", nil)
	service.change = func(path string, body []byte) []byte {
		var answer map[string]any
		if !strings.HasSuffix(path, "/consistency") || json.Unmarshal(body, &answer) != nil {
			return body
		}
		answer["hashes"] = []string{strings.Repeat("0", 64)}
		changed, _ := json.Marshal(answer)
		return changed
	}
	wantMarks(t, "wrong proof", visit(t, b, page+"four"), map[string]string{"inclusion": "ok: proved", "consistency": "fail: no valid proof between sizes 3 and 4: ", "outcome": "fail: Not proved: no valid proof "})
	service.change = nil
	forge := `
		const name = "agentledger:log:` + string(ledgertest.Origin(ledgertest.Red)) + `";
		const kept = JSON.parse(localStorage.getItem(name));
		const lines = kept.checkpoint.split("\n");
		lines[2] = btoa(String.fromCharCode(...new Uint8Array(32)));
		localStorage.setItem(name, JSON.stringify({...kept, checkpoint: lines.join("\n")}));`
	if err := b.Run(forge, nil); err != nil {
		t.Fatal(err)
	}
	wantMarks(t, "another root", visit(t, b, page+"four"), map[string]string{"consistency": "fail: fork: ", "outcome": "fail: Not proved: fork: "})
}

// A reader pins a key: the right key verifies the log, a wrong one does not.
func TestPinnedKeyInChromium(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "one", nil)
	w.append(ledgertest.Blue, id.DiscloseFull, "one", nil)
	server := httptest.NewServer(w.handler)
	defer server.Close()
	b, page := chromium.New(t), server.URL+redEvent+"one"
	visit(t, b, page)
	pin := func(key string) (outcome string) {
		t.Helper()
		if err := b.Run(`
			const outcome = document.getElementById("outcome");
			document.getElementById("key").value = args[0];
			document.querySelector("#pin button:not([type])").click();
			while (outcome.dataset.state === "waiting") await new Promise((next) => setTimeout(next, 5));
			return outcome.dataset.state;`, &outcome, key); err != nil {
			t.Fatal(err)
		}
		return outcome
	}
	right, wrong := w.State(t, ledgertest.Red).VerifierKey().String(), w.State(t, ledgertest.Blue).VerifierKey().String()
	for _, c := range []struct{ key, want string }{{right, "ok"}, {wrong, "fail"}, {right, "ok"}} {
		if got := pin(c.key); got != c.want {
			t.Errorf("key %s: got %s, want %s", c.key, got, c.want)
		}
	}
}

// A log's home page checks its head: a valid one, a larger one, a forged one and one with another key.
func TestHeadInChromium(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "one", nil)
	service := &tamper{next: w.handler}
	server := httptest.NewServer(service)
	defer server.Close()
	b, page := chromium.New(t), server.URL+"/log/red"
	right := map[string]string{"checkpoint": "ok: proved", "witnesses": "none: ", "outcome": "ok: Proved"}
	wantMarks(t, "first visit", visit(t, b, page), right)
	wantMarks(t, "empty log", visit(t, b, server.URL+"/log/blue"), right)
	w.append(ledgertest.Red, id.DiscloseFull, "two", nil)
	marks := visit(t, b, page)
	wantMarks(t, "larger tree", marks, right)
	wantMarks(t, "larger tree", marks, map[string]string{"consistency": "ok: extends"})
	wantQuiet(t, b, server.URL)
	service.change = replaceText("/transparency/head", `"tree_size":2`, `"tree_size":3`)
	wantMarks(t, "forged size", visit(t, b, page), map[string]string{"checkpoint": "fail: not proved: ", "consistency": "none: not compared", "outcome": "fail: "})
	other := newWorld(t)
	service.change, service.next = nil, other.handler
	wantMarks(t, "another key", visit(t, b, page), map[string]string{"checkpoint": "fail: ", "outcome": "fail: Not proved: "})
}

// An open home page shows new events without a reload, and checks the new tree. It reports a service that lies about
// the new tree. A paused page makes no requests.
func TestLiveLogInChromium(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "one", nil)
	service := &tamper{next: w.handler}
	server := httptest.NewServer(service)
	defer server.Close()
	b := chromium.New(t)
	visit(t, b, server.URL+"/log/red")
	await := func(what, selector, text string) (marks map[string]string) {
		t.Helper()
		if err := b.Run(`
			const shown = () => document.querySelector(args[0])?.textContent.includes(args[1]);
			for (let i = 0; i < 6000 && !shown(); i++) await new Promise((next) => setTimeout(next, 5));
			if (!shown()) throw new Error(document.body.innerText);
			window.stays = (window.stays ?? 0) + 1; `+waitForMarks, &marks, selector, text); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return marks
	}
	w.append(ledgertest.Red, id.DiscloseFull, "two", nil)
	await("a new event", `#events a[href$="/verify/two"]`, "1")
	await("the new size", "#newest", "2 entries")
	wantMarks(t, "the new tree", await("the check", "#check-consistency .verdict", "extends"), map[string]string{"checkpoint": "ok: proved", "outcome": "ok: Proved"})
	await("a message for screen readers", "#news", "Followed up to size 2.")
	var stays int
	if err := b.Run(`document.getElementById("live").click(); return window.stays;`, &stays); err != nil || stays != 4 {
		t.Errorf("the page was loaded again: %d, %v", stays, err)
	}
	w.append(ledgertest.Red, id.DiscloseFull, "three", nil)
	service.change = replaceText("/transparency/head", `"tree_size":3`, `"tree_size":4`)
	b.Requests()
	var shown bool
	if err := b.Run(`await new Promise((next) => setTimeout(next, 5000)); return document.querySelector("#events a[href$=three]") !== null;`, &shown); err != nil || shown {
		t.Errorf("the page goes on while it is paused: %v, %v", shown, err)
	}
	if asked := b.Requests(); len(asked) > 0 {
		t.Errorf("a page that is paused asks for %q", asked)
	}
	if err := b.Run(`document.getElementById("live").click();`, nil); err != nil {
		t.Fatal(err)
	}
	await("the event after the pause", `#events a[href$="/verify/three"]`, "2")
	await("a lie", "#outcome", "Not proved")
	wantQuiet(t, b, server.URL)
}
