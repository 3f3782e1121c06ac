package web_test

import (
	"encoding/base64"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/chromium"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/internal/test/packtest"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify/pack"
)

// checkDocument checks a document on the open page of checks, and returns the state and the words of the outcome.
func checkDocument(t *testing.T, b *chromium.Browser, content []byte, key string) string {
	t.Helper()
	var got string
	if err := b.Run(`
		while (document.getElementById("checked").dataset.done !== "yes") await new Promise((next) => setTimeout(next, 5));
		const [file, key] = args, outcome = document.getElementById("outcome"), chosen = new DataTransfer();
		chosen.items.add(new File([Uint8Array.from(atob(file), (c) => c.charCodeAt(0))], "document"));
		document.getElementById("trusted").value = key;
		outcome.dataset.state = "waiting";
		document.getElementById("file").files = chosen.files;
		document.querySelector("#check button").click();
		while (outcome.dataset.state === "waiting") await new Promise((next) => setTimeout(next, 5));
		return outcome.dataset.state + ": " + outcome.textContent;`, &got, base64.StdEncoding.EncodeToString(content), key); err != nil {
		t.Fatal(err)
	}
	return got
}

// mustRun runs a script on the open page.
func mustRun(t *testing.T, b *chromium.Browser, script string, value any, args ...any) {
	t.Helper()
	if err := b.Run(script, value, args...); err != nil {
		t.Fatal(err)
	}
}

// sealColor returns the background of the seal of the result.
func sealColor(t *testing.T, b *chromium.Browser) (color string) {
	t.Helper()
	mustRun(t, b, `return getComputedStyle(document.querySelector(".proof .seal")).backgroundColor`, &color)
	return color
}

// newPack returns a pack of a new log with the origin of packtest, and its key.
func newPack(t *testing.T) (content []byte, key string) {
	t.Helper()
	l := packtest.NewLog(t)
	l.Append(packtest.EventSpec{Payload: map[string]any{"n": 1}})
	size := id.Index(len(l.Events))
	return l.Pack(packtest.Selection{End: size, Size: size, Request: pack.Request{Envelopes: true}}).Bytes(t), l.Key().String()
}

// The page of checks remembers the key of a log, uses what other pages remember, and warns of another key.
func TestKnownKeysOfPacksInChromium(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "one", nil)
	server := httptest.NewServer(w.handler)
	defer server.Close()
	b := chromium.New(t)
	content, key := newPack(t)
	name, _, _ := strings.Cut(key, "+")
	foreign, err := tlog.NewVerifierKey(name, edkey.NewPrivate().Public())
	if err != nil {
		t.Fatal(err)
	}
	other := foreign.String() // of another log under the same origin
	store := func(log string) {
		t.Helper()
		mustRun(t, b, `localStorage.setItem("agentledger:log:" + args[0], args[1])`, nil, name, log)
	}
	remember := func(key string) {
		t.Helper()
		store(`{"keys": [{"vkey": "` + key + `", "from_size": 0, "to_size": null, "source": "shown"}]}`)
	}
	want := func(what, got, words string) {
		t.Helper()
		if !strings.HasPrefix(got, words) {
			t.Errorf("%s: got %q, want %q", what, got, words)
		}
	}
	first := strings.TrimSpace(key[strings.Index(key, "+")+1 : strings.LastIndex(key, "+")])
	proved := "ok: Proved, as far as the report says: log " + name + ", under the key " + first
	b.Open(server.URL + "/check")
	want("first time, no key", checkDocument(t, b, content, ""), "none: Whole, but whose? It names the log "+name+". Enter the key that you got from the owner of this log.")
	b.KeepPictures("whose")
	want("still unknown", checkDocument(t, b, content, ""), "none: Whole, but whose?")
	want("a wrong key by hand", checkDocument(t, b, content, other), "fail: can't tell: signed by the key")
	want("a refused key is not remembered", checkDocument(t, b, content, ""), "none: Whole, but whose?")
	want("typed by hand", checkDocument(t, b, content, key), proved+" that you entered; this browser remembers it from now on.")
	b.Open(server.URL + "/check")
	want("second time", checkDocument(t, b, content, ""), proved+", which was entered in this browser on ")
	want("second time, entered", checkDocument(t, b, content, key), proved+", which was entered in this browser on ")
	good := sealColor(t, b)
	b.KeepPictures("proved")
	remember(other)
	want("changed key", checkDocument(t, b, content, ""), "fail: Not proved: another key. The document names the log "+name+". For its size, this browser expects the key ")
	var report string
	if mustRun(t, b, `return document.getElementById("report").textContent`, &report); strings.Contains(report, "proved") || !strings.Contains(report, "1 event shown") {
		t.Errorf("changed key: the report has %s", report)
	}
	if got := sealColor(t, b); got == good {
		t.Errorf("the seals of a proof and of an alarm have the color %s", got)
	}
	b.KeepPictures("anotherkey")
	want("changed key, entered", checkDocument(t, b, content, key), "fail: Not proved: two keys. The document is signed by the key "+first+" that you entered. For its size, ")
	b.KeepPictures("twokeys")
	want("the remembered key stays", checkDocument(t, b, content, ""), "fail: Not proved: another key.")
	remember(key) // as earlier versions did, without a time
	want("without a time", checkDocument(t, b, content, ""), proved+", which this service showed to this browser.")
	store(`{"keys": [{"vkey": "` + key + `", "from_size": 0, "to_size": 1, "source": "shown"}]}`)
	want("an ended key, entered", checkDocument(t, b, content, key), "fail: Not proved: two keys.")
	want("an ended key", checkDocument(t, b, content, ""), "fail: Not proved: another key.")
	store(`{"name": "Bank of \u202eelsewhere", "keys": [{"vkey": "` + key + `", "from_size": 0, "to_size": null, "source": "stated", "by": "0badcafe", "since": "2026-11-03T10:00:00Z"}]}`)
	want("with a name", checkDocument(t, b, content, ""), "ok: Proved, as far as the report says: log "+name+", which this service calls “\u2068Bank of \u202eelsewhere\u2069”, under the key "+first+
		", which an entry of the log states under the key 0badcafe, as this browser saw on 3 Nov 2026.")

	var left bool
	mustRun(t, b, `
		const known = document.getElementById("known"), before = known.hidden;
		known.querySelector("#forget").click();
		return before || !known.hidden || localStorage.getItem("agentledger:log:" + args[0]) !== null;`, &left, name)
	if left {
		t.Error("the log is not forgotten")
	}
	want("forgotten", checkDocument(t, b, content, ""), "none: Whole, but whose?")
	mustRun(t, b, `return !document.getElementById("known").hidden`, &left)
	if left {
		t.Error("an unknown log can be forgotten")
	}

	bundle := w.ask("GET", redEvent+"one?format=json").Body.Bytes()
	want("a bundle, first time", checkDocument(t, b, bundle, ""), "none: Whole, but whose?")
	visit(t, b, server.URL+"/log/red")
	b.Open(server.URL + "/check")
	want("after a visit of the log's page", checkDocument(t, b, bundle, ""), "ok: Proved, as far as the report says: log "+string(ledgertest.Origin(ledgertest.Red))+", which this service calls “")
	spoiled := []byte(strings.Replace(string(bundle), `\"effective\":\"allow\"`, `\"effective\":\"deny\"`, 1))
	want("forged", checkDocument(t, b, spoiled, ""), "fail: not proved: record: ")
}

// The saved page neither reads nor writes what a browser stores for files.
func TestOfflinePageRemembersNothingInChromium(t *testing.T) {
	w := newWorld(t)
	b := chromium.New(t)
	content, key := newPack(t)
	name, _, _ := strings.Cut(key, "+")
	b.Open(keepOffline(t, w))
	mustRun(t, b, `localStorage.setItem("agentledger:log:" + args[0], JSON.stringify({name: "Bank", keys: [{vkey: args[1], from_size: 0, to_size: null, source: "shown"}]}))`, nil, name, key)
	if got := checkDocument(t, b, content, ""); !strings.HasPrefix(got, "none: Whole, but whose? It names the log "+name+". ") {
		t.Errorf("without a key: got %q", got)
	}
	mustRun(t, b, `localStorage.clear()`, nil)
	if got := checkDocument(t, b, content, key); !strings.HasPrefix(got, "ok: Proved, ") || !strings.HasSuffix(got, " that you entered.") {
		t.Errorf("with a key: got %q", got)
	}
	var stored int
	if mustRun(t, b, `return localStorage.length`, &stored); stored != 0 {
		t.Errorf("stored %d entries", stored)
	}
	b.KeepPictures("offline")
}
