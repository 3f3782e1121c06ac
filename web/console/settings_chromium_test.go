package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// An owner sets an organization up in a browser: an ingest key that accepts events, a receiver that gets a test
// delivery, a token that a program uses until it is deleted, and an approver who joins in the same browser.
func TestSettingsInChromium(t *testing.T) {
	t.Parallel()
	s, to := allowed(t), newReceiver(t)
	b := s.Browser()
	b.SignIn(s.Red.Owner)

	b.Visit("/console/ingest-keys?new=1")
	b.Fill("name", "prod")
	b.Press(`button[value="create"]`)
	as := *s.Red
	as.IngestKey.Secret = b.Text(".secret")
	as.Send("by-new-key", nil)
	if got := s.Stranger().Get("/v1/public/orgs/red/verify/by-new-key"); got.Status != http.StatusOK {
		t.Errorf("the event: got %d %s", got.Status, got.Body)
	}

	b.Visit("/console/webhooks")
	b.Fill("name", "Hook")
	b.Fill("url", to.URL)
	b.Must(`document.querySelector('[name="events"][value="run.*"]').click();`, nil)
	b.Press(`button[value="create"]`)
	b.Press(`main a[href*="/console/webhooks/whe_"]`)
	b.Press(`button[value="test"]`)
	for range 600 {
		if b.AwaitScript(); strings.Contains(b.Text("table"), "webhook.test") {
			break
		}
		time.Sleep(50 * time.Millisecond)
		b.Must(`document.documentElement.dataset.done = ""; location.reload();`, nil)
	}
	if got := b.Text("table"); !strings.Contains(got, "webhook.test") || !strings.Contains(got, "delivered") {
		t.Errorf("the page of the receiver: got %q", got)
	}
	if got := to.take("webhook.test"); len(got) != 1 {
		t.Errorf("the receiver got %q", got)
	}

	b.Visit("/console/settings/tokens")
	b.Fill("name", "Program")
	b.Fill("expires_at", time.Now().UTC().Add(48*time.Hour).Format("2006-01-02T15:04"))
	b.Press(`button[value="create"]`)
	token := b.Text(".secret")
	if got := useToken(t, s, token); got != http.StatusOK {
		t.Errorf("the token: got %d", got)
	}
	b.Visit("/console/settings/tokens")
	b.Press(`button[value="delete"]`)
	if got := useToken(t, s, token); got != http.StatusUnauthorized {
		t.Errorf("the deleted token: got %d", got)
	}
	wantApproverJoins(t, s, b)
	b.WantQuiet()
}

// wantApproverJoins invites an approver, whose account is created in the same browser.
func wantApproverJoins(t *testing.T, s *servicetest.Service, b *servicetest.Browser) {
	t.Helper()
	b.Visit("/console/members?new=1")
	b.Fill("email", "carl@red.example")
	b.Fill("role", "approver")
	b.Press(`button[value="invite"]`)
	link := b.Text(".secret")
	b.Press("form.me button")
	b.Open(link)
	b.AwaitText("Create the account and accept")
	b.Fill("display_name", "Carl")
	b.Fill("password", servicetest.Password)
	b.Press(`button[value="accept"]`)
	if got := b.Text("#nav"); !strings.Contains(got, "Carl") {
		t.Errorf("the header: got %q", got)
	}
	b.Visit("/console/members")
	if got := b.Text("main"); !strings.Contains(got, "Carl") || strings.Contains(got, "Invite a person") {
		t.Errorf("the members as the approver sees them: got %q", got)
	}
}
