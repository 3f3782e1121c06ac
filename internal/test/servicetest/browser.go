package servicetest

import (
	"slices"
	"strings"
	"time"

	"github.com/agentledger/agentledger/internal/test/chromium"
)

// Browser is a real browser at the pages of a service.
type Browser struct {
	*chromium.Browser
	service *Service
}

// Browser starts a browser without a session.
func (s *Service) Browser() *Browser {
	s.Helper()
	return &Browser{chromium.New(s.TB), s}
}

// Visit opens a page and waits until its script is done.
func (b *Browser) Visit(path string) {
	b.service.Helper()
	b.Open(b.service.URL + path)
	b.AwaitScript()
}

// AwaitScript waits until the page's script says that it is done.
func (b *Browser) AwaitScript() {
	b.service.Helper()
	b.Must(`
		while (document.documentElement.dataset.done !== "yes") await new Promise((next) => setTimeout(next, 5));`, nil)
}

// Must runs a script, which must not fail.
func (b *Browser) Must(script string, into any, args ...any) {
	b.service.Helper()
	if err := b.Run(script, into, args...); err != nil {
		b.service.Fatal(err)
	}
}

// Fill types into the field of a name.
func (b *Browser) Fill(name, text string) {
	b.service.Helper()
	b.Must(`
		const field = document.querySelector("[name=" + CSS.escape(args[0]) + "]");
		field.value = args[1];
		field.dispatchEvent(new Event("input", {bubbles: true}));
		field.dispatchEvent(new Event("change", {bubbles: true}));`, nil, name, text)
}

// Press presses the button that a selector finds, and waits for the page that it leads to.
func (b *Browser) Press(selector string) {
	b.service.Helper()
	b.Must(`document.documentElement.dataset.old = "yes"; document.querySelector(args[0]).click();`, nil, selector)
	b.Must(`
		const shown = () => document.documentElement.dataset.old !== "yes" && document.readyState === "complete";
		for (let i = 0; i < 2000 && !shown(); i++) {
			await new Promise((next) => setTimeout(next, 5));
		}`, nil)
	b.AwaitScript()
}

// Start presses a button whose script leads to another page later, after which AwaitText waits.
func (b *Browser) Start(selector string) {
	b.service.Helper()
	b.Must(`document.querySelector(args[0]).click();`, nil, selector)
}

// AwaitText waits until a page shows a text, also when scripts lead there, and until its own script is done. Listing what a
// page shows takes the browser much longer than watching the document, so it lists again only after a change.
func (b *Browser) AwaitText(text string) {
	b.service.Helper()
	shown := ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		before := b.Version()
		if shown = b.ShownText(); strings.Contains(shown, text) {
			b.AwaitScript()
			return
		}
		for stale := time.Now().Add(time.Second); before != "" && b.Version() == before && time.Now().Before(stale); {
			time.Sleep(10 * time.Millisecond)
		}
	}
	b.service.Fatalf("the page does not show %q: %s", text, shown)
}

// SignIn signs a person in by the page.
func (b *Browser) SignIn(email string) {
	b.service.Helper()
	b.Visit("/signin")
	b.Fill("email", email)
	b.Fill("password", Password)
	b.Press(`button[value="sign-in"]`)
}

// Text returns the text of the part of the page that a selector finds.
func (b *Browser) Text(selector string) (text string) {
	b.service.Helper()
	b.Must(`return document.querySelector(args[0])?.innerText ?? ""`, &text, selector)
	return text
}

// WantQuiet fails for requests to other hosts and for messages of the console, which also has those of the content
// security policy.
func (b *Browser) WantQuiet() {
	b.service.Helper()
	foreign := slices.DeleteFunc(b.Requests(), func(u string) bool {
		own := strings.HasPrefix(u, b.service.URL+"/")
		return own || strings.HasPrefix(u, "chrome://") || strings.HasPrefix(u, "data:")
	})
	if len(foreign) > 0 {
		b.service.Errorf("requests to other hosts: %q", foreign)
	}
	if got := b.Messages(); len(got) > 0 {
		b.service.Errorf("the console says %q", got)
	}
}
