package notify_test

import (
	"testing"

	"github.com/agentledger/agentledger/internal/deliver/notify"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

// A name that could be taken for a link, or that has invisible characters, is not mailed.
func TestOrganizationName(t *testing.T) {
	for _, name := range []string{"Acme", "Acme Inc.", "St. Mary's (North) & Sons", "Müller 3. Werk", "株式会社", "Firm: North", "می\u200cخواهم", "A - B, C"} {
		if got := notify.OrganizationName(org.Summary{Name: name, Slug: "slug"}); got != name {
			t.Errorf("%q: got %q", name, got)
		}
	}
	for _, name := range []string{
		"Your bank: log in at http://evil.example/login now", "evil.example", "Pay at EVIL.example today", "www evil", "HTTPS evil", "a@b",
		"evil。example", "evil．example", "evil／x", "\\\\evil", "mailto:x", "10.0.0.1", "x\u202emoc.live", "a\u2028b", "a\u200bb", "a\nb", "a\u2066b",
		"evil.\u200dexample", "evil\u200c.example", "evie\u0301.example", "evil-.example", "evil.１",
	} {
		if got := notify.OrganizationName(org.Summary{Name: name, Slug: "slug"}); got != "slug" {
			t.Errorf("%q: got %q", name, got)
		}
	}
}
