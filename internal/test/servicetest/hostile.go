package servicetest

import (
	"fmt"
	"strings"
	"unicode"
)

// Hostile returns texts that become markup, script or other text where a page does not escape them. None has a
// control character, so that agents may use them as principals.
func Hostile() []string {
	return []string{
		`<script>window.pwned=1</script>`, `</script><script>window.pwned=1</script>`,
		`<img src=x onerror=window.pwned=1>`,
		`"><svg onload=window.pwned=1>`, `'><a href="javascript:window.pwned=1">x</a>`,
		`</pre></bdi><iframe srcdoc="<script>parent.pwned=1</script>">`, `{{.Page}}{{template "frame"}}`,
		`${window.pwned=1}`, `<!--`, `]]>`, `<style>*{display:none}</style>`, `<base href="https://evil.example/">`,
		`<meta http-equiv="refresh" content="0;url=https://evil.example/">`,
		`&lt;script&gt;`, `javascript:window.pwned=1`,
		"\u202egnp.exe", "\u2069\u202eorder", "\u2028window.pwned=1\u2029", "\u2066<b>\u2069",
		`</textarea></template><img src=x onerror=window.pwned=1>`, `onclick=window.pwned=1 `, "\U000e0061\u200bunseen",
		`<math><mtext><table><mglyph><style><img src=x onerror=window.pwned=1>`, `https://evil.example/`,
		`' onfocus='window.pwned=1' autofocus='`,
	}
}

// Shown returns a stored text as pages show it: unseen characters by their numbers.
func Shown(text string) string {
	var shown strings.Builder
	for _, r := range text {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			fmt.Fprintf(&shown, "U+%04X", r)
		} else {
			shown.WriteRune(r)
		}
	}
	return shown.String()
}

// WantHarmless fails unless the page that is open shows a text as text, in an element of its own, and no element or
// script was made of a stored text. No shown text has a character that changes the order of others.
func (b *Browser) WantHarmless(text string) {
	b.service.Helper()
	var seen struct {
		Pwned, Text bool
		Foreign     int
		Order       []string
	}
	b.Must(`
		const texts = [...document.querySelectorAll("main bdi")].map((e) => e.textContent);
		const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), order = [];
		while (walk.nextNode()) {
			if (/[\u202a-\u202e\u2066-\u2069]/.test(walk.currentNode.data)) order.push(walk.currentNode.data);
		}
		return {
			pwned: window.pwned !== undefined, text: texts.includes(args[0]), order,
			foreign: document.querySelectorAll("main :is(script, iframe, img, style, base, meta, math, " +
				"[onclick], [onfocus], [onload], [onerror], a[href^=javascript])").length,
		};`, &seen, Shown(text))
	if seen.Pwned || !seen.Text || seen.Foreign != 0 || len(seen.Order) != 0 {
		b.service.Errorf("%q: got %+v", text, seen)
	}
}
