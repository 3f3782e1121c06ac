package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/chromium"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
)

// hostile returns texts that become markup, script or other text if a page does not escape them.
func hostile() []string {
	return []string{
		`<script>window.pwned=1</script>`, `</script><script>window.pwned=1</script>`, `<img src=x onerror=window.pwned=1>`,
		`"><svg onload=window.pwned=1>`, `'><a href="javascript:window.pwned=1">x</a>`, `</pre></bdi><iframe srcdoc="<script>parent.pwned=1</script>">`,
		`{{.Page}}{{template "frame"}}`, `${window.pwned=1}`, `<!--`, `]]>`, `<style>*{display:none}</style>`, `<base href="https://evil.example/">`,
		`<meta http-equiv="refresh" content="0;url=https://evil.example/">`, `&lt;script&gt;`, `javascript:window.pwned=1`, "\u202egnp.exe",
		"\u2028window.pwned=1\u2029", "\u2066<b>\u2069", `onclick=window.pwned=1 `, `<math><mtext><table><mglyph><style><img src=x onerror=window.pwned=1>`,
		`https://evil.example/`, `' onfocus='window.pwned=1' autofocus='`,
	}
}

// visible returns a text as pages show it: with the code points of invisible characters.
func visible(text string) string {
	var shown strings.Builder
	for _, r := range text {
		if unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			fmt.Fprintf(&shown, "U+%04X", r)
		} else {
			shown.WriteRune(r)
		}
	}
	return shown.String()
}

// Every text that an agent chooses is text on the page, in the service's markup and in the browser.
func TestHostileTexts(t *testing.T) {
	w := newWorld(t)
	texts := hostile()
	payload := map[string]any{}
	for _, text := range texts {
		payload[text] = []any{text, map[string]any{text: text}}
	}
	var names []string
	for i, text := range texts {
		name := "hostile-" + string(rune('a'+i))
		names = append(names, name)
		for _, tenant := range []id.Tenant{ledgertest.Red, ledgertest.Blue} {
			w.append(tenant, id.DiscloseFull, name, map[string]any{"actor_principal": text, "payload": payload, "other": text})
		}
	}
	const tags = "<script>window|<img src=x|<svg onload|<iframe|<style>*|<base|<meta http-equiv=\"refresh|<math|<a href=\"javascript"
	for _, name := range names {
		body := w.page(redEvent+name, http.StatusOK).Body.String()
		if i := strings.IndexFunc(body, func(r rune) bool { return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) }); i >= 0 {
			t.Errorf("%s: the page has an unseen character: %q", name, body[max(0, i-40):min(len(body), i+40)])
		}
		for tag := range strings.SplitSeq(tags, "|") {
			if strings.Contains(body, tag) {
				t.Errorf("%s: the page has %s", name, tag)
			}
		}
	}
	server := httptest.NewServer(w.handler)
	defer server.Close()
	b := chromium.New(t)
	for i, name := range names {
		marks := visit(t, b, server.URL+redEvent+name)
		wantMarks(t, name, marks, map[string]string{"outcome": "ok: Proved", "envelope": "ok: proved"})
		var seen struct {
			Pwned   bool
			Text    bool
			Foreign int
		}
		if err := b.Run(`
			const facts = [...document.querySelectorAll(".facts dd")].map((d) => d.textContent);
			return {
				pwned: window.pwned !== undefined,
				text: facts.includes(args[0]),
				foreign: document.querySelectorAll("main script, main iframe, main img, main style, main base, main meta, main math, main [onclick], main [onfocus]").length,
			};`, &seen, visible(texts[i])); err != nil {
			t.Fatal(err)
		}
		if seen.Pwned || !seen.Text || seen.Foreign != 0 {
			t.Errorf("%q: got %+v", texts[i], seen)
		}
	}
	wantQuiet(t, b, server.URL)
}
