package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// A key is created, shown once, changed and revoked without JavaScript. Another organization does not see it.
func TestIngestKeys(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	made := ann.Post("/console/ingest-keys", "do", "create", "name", "prod", "scopes", "events", "expires_at", "2099-01-01T00:00")
	secret := regexp.MustCompile(`apl_live_[a-z2-7]+_[a-z0-9]+`).FindString(made.Body)
	if made.Status != http.StatusOK || secret == "" || made.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("got %d %s", made.Status, made.Body)
	}
	list := ann.Get("/console/ingest-keys").Body
	found := regexp.MustCompile(`<a href="(/console/ingest-keys/[^"]+)" title="[^"]*"><bdi>prod</bdi>`).FindStringSubmatch(list)
	if found == nil || strings.Contains(list, secret) {
		t.Fatalf("the list lacks the key or contains its secret: %s", list)
	}
	if got := bob.Get(found[1]); got.Status != http.StatusNotFound || strings.Contains(got.Body, "prod") {
		t.Errorf("the other organization: got %d %s", got.Status, got.Body)
	}
	if got := bob.Post(found[1], "do", "revoke"); got.Status != http.StatusNotFound {
		t.Errorf("the other organization revokes the key: got %d", got.Status)
	}
	refused := ann.Post(found[1], "do", "change", "name", "", "asks", "yes")
	if refused.Status != http.StatusUnprocessableEntity || !strings.Contains(refused.Body, "name must have") {
		t.Errorf("without a name: got %d %s", refused.Status, refused.Body)
	}
	if got := ann.Post(found[1], "do", "change", "name", "prod <2>"); got.Status != http.StatusSeeOther {
		t.Errorf("change: got %d %s", got.Status, got.Body)
	}
	if got := ann.Get(found[1] + "?notice=saved").Body; !strings.Contains(got, "prod &lt;2&gt;") || !strings.Contains(got, "The changes are saved.") {
		t.Errorf("got %s", got)
	}
	if got := ann.Post(found[1], "do", "revoke"); got.Status != http.StatusSeeOther {
		t.Errorf("revoke: got %d %s", got.Status, got.Body)
	}
	if got := ann.Get(found[1]).Body; strings.Contains(got, "Revoke the key") {
		t.Errorf("a revoked key has a form to revoke it: %s", got)
	}
}

// The issuer of a key is set, shown, refused by name and removed on its page, by those who may manage it.
func TestSubjectIssuerForm(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	ann.Post("/console/ingest-keys", "do", "create", "name", "prod")
	found := regexp.MustCompile(`<a href="(/console/ingest-keys/[^"]+)" title="[^"]*"><bdi>prod</bdi>`).FindStringSubmatch(ann.Get("/console/ingest-keys").Body)
	if found == nil {
		t.Fatal("the list lacks the key")
	}
	wanted := []string{"do", "issuer", "issuer", "https://login.example", "audience", "https://ledger.example", "required", "yes"}
	if got := bob.Post(found[1], wanted...); got.Status != http.StatusNotFound {
		t.Errorf("the other organization: got %d %s", got.Status, got.Body)
	}
	if got := ann.Post(found[1], wanted...); got.Status != http.StatusSeeOther {
		t.Fatalf("got %d %s", got.Status, got.Body)
	}
	const shown = "Issuer of subjects"
	if got := ann.Get(found[1]).Body; !strings.Contains(got, shown) || !strings.Contains(got, "https://ledger.example") || !strings.Contains(got, ", required") {
		t.Errorf("got %s", got)
	}
	if got := ann.Post(found[1], "do", "issuer", "issuer", "http://login.example", "audience", "a"); got.Status != http.StatusUnprocessableEntity ||
		!strings.Contains(got.Body, "must be an https URL") {
		t.Errorf("a malformed issuer: got %d %s", got.Status, got.Body)
	}
	carl := s.SignIn(s.Red.Join("carl", "auditor"))
	if got := carl.Get(found[1]).Body; !strings.Contains(got, shown) || strings.Contains(got, "Save the issuer") {
		t.Errorf("an auditor: got %s", got)
	}
	if got := ann.Post(found[1], "do", "issuer", "issuer", "", "audience", "", "required", "yes"); got.Status != http.StatusSeeOther {
		t.Errorf("remove: got %d %s", got.Status, got.Body)
	}
	if got := ann.Get(found[1]).Body; strings.Contains(got, shown) {
		t.Errorf("after the removal: got %s", got)
	}
}

// A role without the permission to manage sees the keys but no form.
func TestIngestKeyRoles(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	carl := s.SignIn(s.Red.Join("carl", "auditor"))
	if got := carl.Get("/console/ingest-keys"); got.Status != http.StatusOK || strings.Contains(got.Body, "New ingest key") {
		t.Errorf("got %d %s", got.Status, got.Body)
	}
	if got := carl.Post("/console/ingest-keys", "do", "create", "name", "x"); got.Status != http.StatusForbidden ||
		!strings.Contains(got.Body, "Your role does not allow this") {
		t.Errorf("got %d %s", got.Status, got.Body)
	}
}

// The list in a real browser, beginning with the sign-in.
func TestIngestKeysInChromium(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	b := s.Browser()
	b.SignIn(s.Red.Owner)
	b.Visit("/console/ingest-keys?new=1")
	b.Fill("name", "prod")
	b.Press(`button[value="create"]`)
	if got := b.Text(".secret"); !strings.HasPrefix(got, "apl_live_") {
		t.Errorf("got %q", got)
	}
	b.WantQuiet()
}
