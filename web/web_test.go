package web_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/web"
)

func TestEventAnswersByAccept(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "one", nil)
	const json, text, html = "application/json", "text/plain; charset=utf-8", "text/html; charset=utf-8"
	for _, c := range []struct{ target, accept, want string }{
		{"one", "", json}, {"one", "*/*", json}, {"one", "application/json", json}, {"one", "application/*", json},
		{"one", "text/plain", text}, {"one", "text/*", text}, {"one", "text/html", html}, {"one", browsers, html},
		{"one", "text/html;q=0.5, application/json", json}, {"one?format=json", browsers, json},
		{"one?format=tlog-proof", browsers, text}, {"one", "application/json;q=0.5, text/html;q=0.4, application/cose;q=0.2", json}, {"one?verify=1", "*/*", json},
		{"one?origin=" + string(ledgertest.Origin(ledgertest.Red)), browsers, html},
	} {
		answer := w.ask(http.MethodGet, redEvent+c.target, "Accept: "+c.accept)
		h := answer.Header()
		if answer.Code != http.StatusOK || h.Get("Content-Type") != c.want || h.Get("Vary") != "Accept" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s with Accept %q: got %d %v, want %s", c.target, c.accept, answer.Code, h, c.want)
		}
	}
}

// The JSON is the same as without pages, whatever headers a browser sends, except Accept.
func TestJSONIsAsWithoutPages(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseRecord, "one", nil)
	w.append(ledgertest.Red, id.DiscloseRecord, "two", nil) // the only entry of a log has no COSE receipt
	bare := w.withoutPages()
	for _, target := range []string{"one", "one?verify=0", "one?format=json", "one?format=tlog-proof", "one?format=cose", "none", "one?format=xml"} {
		for _, accept := range []string{"", "*/*", "application/json", "text/plain", "application/cose", "application/cose, text/html;q=0.9"} {
			got, want := w.ask(http.MethodGet, redEvent+target, "Accept: "+accept), bare.ask(http.MethodGet, redEvent+target, "Accept: "+accept)
			got.Header().Del("X-Request-Id")
			want.Header().Del("X-Request-Id")
			if got.Code != want.Code || !bytes.Equal(got.Body.Bytes(), want.Body.Bytes()) || fmt.Sprint(got.Header()) != fmt.Sprint(want.Header()) {
				t.Errorf("%s with Accept %q: got %d %v %s\nwant %d %v %s", target, accept, got.Code, got.Header(), got.Body, want.Code, want.Header(), want.Body)
			}
		}
	}
}

// The page does not contain what the organization does not disclose.
func TestEventPageShowsWhatIsDisclosed(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "erased", nil)
	w.erase(ledgertest.Red, 1)
	w.append(ledgertest.Red, id.DiscloseCommitment, "commitment", nil)
	w.append(ledgertest.Red, id.DiscloseRecord, "record", nil)
	w.append(ledgertest.Red, id.DiscloseFull, "full", nil)
	for _, c := range []struct{ name, shown, hidden string }{
		{"commitment", "only that this entry exists", "agt_test"},
		{"record", "agt_test", "acme.orders.read"},
		{"full", "&#34;secret&#34;: &#34;full&#34;", "only that this entry exists"},
		{"erased", "The envelope was erased on", "acme.orders.read"},
	} {
		body := w.page(redEvent+c.name, http.StatusOK).Body.String()
		if !strings.Contains(body, c.shown) || strings.Contains(body, c.hidden) {
			t.Errorf("%s: want %q and not %q in %s", c.name, c.shown, c.hidden, body)
		}
	}
}

func TestRefusals(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "one", nil)
	w.append(ledgertest.Blue, id.DiscloseFull, "two", nil)
	for _, c := range []struct {
		target string
		status int
	}{
		{redEvent + "two", 404}, {redEvent + "none", 404}, {redEvent + "a%00b", 404}, {redEvent + "one?origin=x", 404},
		{"/log/red/agent/helper-blue", 404}, {"/log/red/agent/none", 404}, {"/log/red/agent/a%2Fb", 404}, {"/log/red/agent/system", 404},
		{"/log/green/agent/helper-red", 404}, {"/log/green", 404}, {"/log/RED", 404}, {"/log/%ff", 404}, {"/v1/public/orgs/green/verify/one", 404}, {"/v1/public/orgs/%ff/verify/one", 404},
		{"/find?log=green&event=one", 404}, {"/find?log=red&event=two", 404}, {"/find?log=red&event=1", 404},
		{"/find?log=red&event=00", 404}, {"/find?log=green", 404}, {"/find?log=red&event=" + strings.Repeat("0a", 32), 404}, {"/logs", 404}, {"/find?event=one", 422}, {"/find", 422},
		{"/assets/0123456789abcdef/agentledger.css", 404}, {"/assets/" + folder(w) + "/none.js", 404},
		{"/assets/0123456789abcdef/verifier/bytes.js", 404}, {"/assets/0123456789abcdef/verifier/log/note.js", 404},
		{"/assets/" + folder(w) + "/verifier/../agentledger.css", 404},
	} {
		answer := w.page(c.target, c.status)
		if got := answer.Header(); got.Get("Cache-Control") != "no-store" || got.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%s: got %v", c.target, got)
		}
	}
}

// The payload is shown with its numbers, and the signed text as it is.
func TestExactNumbers(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "one", map[string]any{"payload": map[string]any{
		"$tagged": true, "id": map[string]any{"$number": "1915883588174806058"}}})
	page := w.page(redEvent+"one", http.StatusOK).Body.String()
	_, payload, _ := strings.Cut(page, `aria-label="Payload">`)
	payload, _, _ = strings.Cut(payload, "</pre>")
	if !strings.Contains(payload, "&#34;id&#34;: 1915883588174806058") || strings.Contains(payload, "$") {
		t.Errorf("the payload is shown as %s", payload)
	}
	if !strings.Contains(page, "$tagged") {
		t.Error("the signed text is not shown as it is")
	}
}

func TestFind(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "one", nil)
	w.append(ledgertest.Red, id.DiscloseFull, "0", nil)
	w.append(ledgertest.Blue, id.DiscloseFull, "a:b", nil)
	for _, c := range []struct{ query, want string }{
		{"log=red&event=one", redEvent + "one"}, {"log=red&event=1", redEvent + "0"},
		{"log=red&event=0", redEvent + "0"}, // an ID takes precedence over an index
		{"log=red", "/log/red"}, {"log=blue&event=", "/log/blue"},
		{"log=blue&event=0", "/v1/public/orgs/blue/verify/a:b"},
	} {
		if got := w.page("/find?"+c.query, http.StatusSeeOther).Header().Get("Location"); got != c.want {
			t.Errorf("%s: got %s, want %s", c.query, got, c.want)
		}
	}
}

// The cause of a fault is not shown, and the answer is the same as the interface's.
func TestUnreadableStore(t *testing.T) {
	w := newWorld(t)
	for err, status := range map[error]int{
		fault.New(fault.Unavailable, "The store can't be reached"): http.StatusServiceUnavailable,
		errors.New("a cause"): http.StatusInternalServerError,
	} {
		w.serve(broken{err: err})
		for _, target := range []string{redEvent + "one", "/find?log=red&event=one"} {
			body := w.ask(http.MethodGet, target, "Accept: "+browsers)
			if text := body.Body.String(); body.Code != status || !strings.Contains(text, `"request_id"`) || strings.Contains(text, "cause") {
				t.Errorf("%s: got %d %s, want %d", target, body.Code, text, status)
			}
		}
	}
}

func TestHomesAreRevalidated(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Blue, id.DiscloseFull, "two", nil)
	for _, target := range []string{"/", "/help", "/help/api", "/help/api/console", "/help/runbooks", "/clients", "/clients/index.json", "/check", "/check/offline.html", "/log/red", "/log/blue", "/log/red/agent/helper-red"} {
		etag := w.page(target, http.StatusOK).Header().Get("ETag")
		if etag == "" {
			t.Fatalf("%s: no ETag", target)
		}
		w.page(target, http.StatusNotModified, "If-None-Match: "+etag)
		w.page(target, http.StatusOK, `If-None-Match: "other"`)
	}
}

// A log's home page has the values of that log, and of no other.
func TestHomeOfLog(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "first-of-red", nil)
	w.append(ledgertest.Red, id.DiscloseFull, "last-of-red", nil)
	red, blue := w.page("/log/red", http.StatusOK).Body.String(), w.page("/log/blue", http.StatusOK).Body.String()
	state := w.State(t, ledgertest.Red)
	root := state.Shown().Root.String()
	for _, want := range []string{root, "<b>2 entries, one tree.</b>", `href="/v1/public/orgs/red/verify/last-of-red"`,
		html.EscapeString(state.VerifierKey().String()), "--url &#39;https://log.example/o/" + ledgertest.Organization(ledgertest.Red).String() + "&#39;"} {
		if !strings.Contains(html.UnescapeString(red), html.UnescapeString(want)) {
			t.Errorf("the home of red lacks %s: %s", want, red)
		}
	}
	for _, other := range []string{root, "last-of-red", string(ledgertest.Origin(ledgertest.Red))} {
		if strings.Contains(html.UnescapeString(blue), other) {
			t.Errorf("the home of blue has %s", other)
		}
	}
}

func TestPageOfAgent(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "one", map[string]any{"agent_id": "helper-red"})
	if body := w.page(redEvent+"one", http.StatusOK).Body.String(); !strings.Contains(body, `href="/log/red/agent/helper-red"`) {
		t.Error("the event's page does not lead to the agent's")
	}
	body := w.page("/log/red/agent/helper-red", http.StatusOK).Body.String()
	for _, want := range []string{"<code><bdi>key_old</bdi></code>", did.Multikey([32]byte{byte(ledgertest.Red)}), "revoked since <time", "retired since <time",
		"<td>active</td>", `href="/v1/public/agents/helper-red/did.json"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %s: %s", want, body)
		}
	}
	if strings.Contains(body, did.Multikey([32]byte{byte(ledgertest.Blue)})) {
		t.Error("the page has a key of the other organization")
	}
}

// The home page is cached, and never older than the head.
func TestHomeOfLogFollows(t *testing.T) {
	w := newWorld(t)
	for i, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"} {
		w.append(ledgertest.Red, id.DiscloseFull, name, nil)
		for range 2 {
			body := w.page("/log/red", http.StatusOK).Body.String()
			if want := fmt.Sprintf(`<td class="num q"><a href="%s%s">%d</a></td>`, redEvent, name, i); !strings.Contains(body, want) {
				t.Errorf("%s: the home lacks %s", name, want)
			}
			if got := strings.Count(body, `<td class="num q">`); got != i+1 {
				t.Errorf("%s: got %d events", name, got)
			}
		}
		if body := w.page("/log/blue", http.StatusOK).Body.String(); strings.Contains(body, `<td class="num q">`) {
			t.Error("the other log has events")
		}
	}
}

// folder returns the assets folder that the home page uses.
func folder(w *world) string {
	w.Helper()
	found := regexp.MustCompile(`/assets/([0-9a-f]{16})/agentledger.css`).FindStringSubmatch(w.page("/", http.StatusOK).Body.String())
	if found == nil {
		w.Fatal("the home names no assets")
	}
	return found[1]
}

// The verifier that pages load is the client's source, byte for byte, and the page shows the SHA-256 of the list of its
// files.
func TestVerifierIsTheClients(t *testing.T) {
	w := newWorld(t)
	const source = "../clients/typescript/src"
	var sums string
	for _, part := range []string{"bytes.js", "canonical", "crypto", "errors.js", "log", "verify"} {
		err := fs.WalkDir(os.DirFS(source), part, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			content, err := os.ReadFile(source + "/" + name)
			sums += fmt.Sprintf("%x  %s\n", sha256.Sum256(content), name)
			w.checkAsset("verifier/"+name, content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	w.checkAsset("verifier/SHA256SUMS", []byte(sums))
	sum := sha256.Sum256([]byte(sums))
	if !strings.Contains(w.page("/", http.StatusOK).Body.String(), hex.EncodeToString(sum[:])) {
		t.Errorf("the page does not show %x", sum)
	}
}

// A release contains the file that each service serves, and the list whose hash the page shows.
func TestOfflinePage(t *testing.T) {
	w := newWorld(t)
	body, sums, err := web.OfflinePage()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(body, w.page("/check/offline.html", http.StatusOK).Body.Bytes()) {
		t.Error("the page differs from the served one")
	}
	sum := sha256.Sum256(sums)
	if !bytes.Contains(body, []byte(hex.EncodeToString(sum[:]))) {
		t.Errorf("the page does not show %x", sum)
	}
}

func TestOwnAssets(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"agentledger.css", "event.js", "favicon.svg"} {
		content, err := os.ReadFile("page/assets/" + name)
		if err != nil {
			t.Fatal(err)
		}
		w.checkAsset(name, content)
	}
}

func (w *world) checkAsset(name string, want []byte) {
	w.Helper()
	target := "/assets/" + folder(w) + "/" + name
	plain, packed := w.page(target, http.StatusOK), w.page(target, http.StatusOK, "Accept-Encoding: gzip")
	unpacked, err := gzip.NewReader(packed.Body)
	if err != nil {
		w.Fatal(err)
	}
	got, err := io.ReadAll(unpacked)
	if err != nil || !bytes.Equal(got, want) || !bytes.Equal(plain.Body.Bytes(), want) {
		w.Errorf("%s: %v, or other bytes than the source's", name, err)
	}
	if h := plain.Header(); h.Get("Cache-Control") != "public, max-age=31536000, immutable" || h.Get("Vary") != "Accept-Encoding" {
		w.Errorf("%s: got %v", name, h)
	}
	w.page(target, http.StatusNotModified, "If-None-Match: "+plain.Header().Get("ETag"))
}
