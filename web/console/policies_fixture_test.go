package console_test

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

const list, refunds = "/console/policies", "/console/policies/refunds"

// document is a policy of the tests. Its rule denies refunds above an amount.
func document(most string) string {
	return `{"name":"Refunds","rules":[{"rule_id":"cap","tool":"acme.payments.refund","decision":"deny","reason":"Too much","when":"payload.amount_usd > ` +
		most + `"}],"tests":[{"name":"large","input":{"tool_name":"acme.payments.refund","payload":{"amount_usd":500}},"expect":{"decision":"deny","rule_id":"cap"}}]}`
}

// base returns the fields by which the editor identifies the version that its text is based on.
func base(t *testing.T, p *servicetest.Person, page string) []string {
	t.Helper()
	body := p.Get(page).Body
	var fields []string
	for _, name := range []string{"base_version", "base_digest", "base_written_at"} {
		found := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(body)
		if found == nil {
			t.Fatalf("%s has no %s: %s", page, name, body)
		}
		fields = append(fields, name, html.UnescapeString(found[1]))
	}
	return fields
}

// shown returns the fields by which the page of a policy identifies the version that it shows.
func shown(t *testing.T, p *servicetest.Person, page string) []string {
	t.Helper()
	body := p.Get(page).Body
	version := regexp.MustCompile(`id="standing">Version (\d+)`).FindStringSubmatch(body)
	digest := regexp.MustCompile(`<dt>policy_digest</dt><dd><code>([0-9a-f]{64})<`).FindStringSubmatch(body)
	if version == nil || digest == nil {
		t.Fatalf("%s identifies no version: %s", page, body)
	}
	return []string{"version", version[1], "policy_digest", digest[1]}
}

// save saves a text in the editor, which must succeed.
func save(t *testing.T, p *servicetest.Person, page, text string) {
	t.Helper()
	fields := append(base(t, p, page+"/edit"), "do", "save", "document", text)
	p.Post(page+"/edit", fields...).Want(t, "save", http.StatusSeeOther)
}

// create creates the policy of the tests, which must succeed.
func create(t *testing.T, p *servicetest.Person, more ...string) {
	t.Helper()
	p.Post(list, append([]string{"do", "create", "name", "Refunds", "policy_id", "refunds"}, more...)...).Want(t, "create", http.StatusSeeOther)
}

// activate activates the version that a page shows, which must succeed.
func activate(t *testing.T, p *servicetest.Person, page string) {
	t.Helper()
	p.Post(page, append(shown(t, p, page), "do", "activate")...).Want(t, "activate", http.StatusSeeOther)
}

// text returns the text of the editor.
func text(t *testing.T, body string) string {
	t.Helper()
	_, rest, found := strings.Cut(body, `name="document"`)
	_, rest, opened := strings.Cut(rest, ">\n")
	written, _, closed := strings.Cut(rest, "</textarea>")
	if !found || !opened || !closed {
		t.Fatalf("there is no text: %s", body)
	}
	return html.UnescapeString(written)
}
