package listen_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/mcp/gateway"
	"github.com/agentledger/agentledger/internal/mcp/listen"
	"github.com/agentledger/agentledger/internal/test/chromium"
)

// newPage serves an empty page with an origin of its own.
func newPage(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html><title>page</title>")
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// useSession is what a page does: it opens a session, or takes the given one, and lists the tools.
const useSession = `
	const [url, known] = args;
	const send = async (session, message) => {
		const answer = await fetch(url, {method: "POST", body: JSON.stringify({jsonrpc: "2.0", ...message}),
			headers: {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer right",
				...(session ? {"Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-06-18"} : {})}});
		return [answer.status, answer.headers.get("Mcp-Session-Id"), await answer.text()];
	};
	let session = known;
	if (!session) {
		[, session] = await send("", {id: 1, method: "initialize", params: {protocolVersion: "2025-06-18", capabilities: {}, clientInfo: {name: "c", version: "1"}}});
		await send(session, {method: "notifications/initialized"});
	}
	const [status, , text] = await send(session, {id: 2, method: "tools/list"});
	return {status, session: session ?? "", text};`

type used struct {
	Status  int
	Session string
	Text    string
}

// Real pages in a browser: two that are allowed have sessions of their own, and neither can use the other's. A third
// one gets no answer.
func TestPagesInBrowser(t *testing.T) {
	pages := []string{newPage(t), newPage(t), newPage(t)}
	opened := make(chan string, 8)
	server := start(t, listen.Options{Origins: pages[:2], Token: "right", Serve: func(ctx context.Context, caller gateway.Caller, origin string) error {
		opened <- origin
		return serveSDK(ctx, caller, origin)
	}})
	b := chromium.New(t)
	var first used
	for i, page := range pages[:2] {
		b.Open(page)
		var own used
		if err := b.Run(useSession, &own, server.URL, ""); err != nil {
			t.Fatal(err)
		}
		if own.Status != 200 || !strings.Contains(own.Text, `"name":"ask"`) || <-opened != page {
			t.Errorf("page %d: got %+v", i, own)
		}
		if i == 0 {
			first = own
			continue
		}
		var others used
		if err := b.Run(useSession, &others, server.URL, first.Session); err != nil || others.Status != http.StatusForbidden {
			t.Errorf("the session of another page: got %+v, %v", others, err)
		}
	}
	b.Open(pages[2])
	var none used
	if err := b.Run(useSession, &none, server.URL, ""); err == nil || len(opened) != 0 {
		t.Errorf("a page that is not allowed: got %+v, %d sessions", none, len(opened))
	}
}

func TestPageHeaders(t *testing.T) {
	server := start(t, listen.Options{Origins: []string{"https://app.example"}, Token: "right", Principal: "X-User"})
	ask := map[string]string{"Access-Control-Request-Method": "POST", "Access-Control-Request-Private-Network": "true"}
	for name, tc := range map[string]struct {
		method, origin string
		headers        map[string]string
		want           int
		allowed        string
		asked          bool
	}{
		"question":                    {"OPTIONS", "https://app.example", ask, 204, "https://app.example", true},
		"question of another page":    {"OPTIONS", "https://evil.example", ask, 403, "", false},
		"question without an origin":  {"OPTIONS", "", ask, 401, "", false},
		"options that is no question": {"OPTIONS", "https://app.example", nil, 401, "https://app.example", false},
		"without a token":             {"POST", "https://app.example", nil, 401, "https://app.example", false},
		"another page":                {"POST", "https://evil.example", nil, 403, "", false},
	} {
		r, err := http.NewRequestWithContext(t.Context(), tc.method, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if tc.origin != "" {
			r.Header.Set("Origin", tc.origin)
		}
		for header, value := range tc.headers {
			r.Header.Set(header, value)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		h := answer.Header
		if answer.StatusCode != tc.want || h.Get("Access-Control-Allow-Origin") != tc.allowed || (tc.allowed != "") != (h.Get("Vary") == "Origin") {
			t.Errorf("%s: got %d %v", name, answer.StatusCode, h)
		}
		if tc.asked != strings.HasSuffix(h.Get("Access-Control-Allow-Headers"), ", X-User") || tc.asked != (h.Get("Access-Control-Allow-Private-Network") == "true") {
			t.Errorf("%s: got %v", name, h)
		}
	}
}

// A session that a page has opened is used by that page, and by programs, which send no origin.
func TestSessionOfAnOrigin(t *testing.T) {
	server := start(t, listen.Options{Origins: []string{"https://a.example", "https://b.example"}})
	const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	for owner, allowed := range map[string]map[string]int{
		"https://a.example": {"https://a.example": 200, "https://b.example": 403, "": 200},
		"":                  {"https://a.example": 403, "https://b.example": 403, "": 200},
	} {
		headers := map[string]string{}
		if owner != "" {
			headers["Origin"] = owner
		}
		_, session := post(t, server.URL, hello, headers)
		for origin, want := range allowed {
			headers := map[string]string{"Mcp-Session-Id": session}
			if origin != "" {
				headers["Origin"] = origin
			}
			if got, _ := post(t, server.URL, ping, headers); got != want {
				t.Errorf("session of %q used by %q: got %d, want %d", owner, origin, got, want)
			}
		}
	}
}
