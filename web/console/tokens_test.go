package console_test

import (
	"html"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// secretIn returns the secret that a page shows once.
func secretIn(t testing.TB, a servicetest.Answer, prefix string) string {
	t.Helper()
	found := regexp.MustCompile(`class="secret">(` + prefix + `[^<]+)<`).FindStringSubmatch(a.Body)
	if a.Status != http.StatusOK || found == nil || a.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("no secret: %d %s", a.Status, a.Body)
	}
	return html.UnescapeString(found[1])
}

func tokenIn(t testing.TB, a servicetest.Answer) string {
	t.Helper()
	found := regexp.MustCompile(`name="token_id" value="([^"]+)"`).FindStringSubmatch(a.Body)
	if found == nil {
		t.Fatalf("no token: %s", a.Body)
	}
	return found[1]
}

// useToken requests the policies as a program, and returns the status.
func useToken(t testing.TB, s *servicetest.Service, token string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/v1/console/policies", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}

// tomorrow is a value for datetime fields.
func tomorrow() string { return time.Now().UTC().AddDate(0, 0, 1).Format("2006-01-02T15:04") }

// A user creates a token, uses it and deletes it. No other user sees it.
func TestTokens(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	carl := s.SignIn(s.Red.Join("carl", "approver"))
	const page = "/console/settings/tokens"
	carl.Get(page).Want(t, "an approver", http.StatusOK, `<option value="approver">`, "You have no token").WantNone(t, "an approver", `<option value="admin">`)
	carl.Post(page, "do", "create", "name", "x", "role", "admin", "expires_at", tomorrow()).Want(t, "beyond", http.StatusForbidden, "The token&#39;s role exceeds yours")
	ann.Post(page, "do", "create", "name", "ci", "role", "auditor", "expires_at", "2001-01-01T00:00").
		Want(t, "past", http.StatusUnprocessableEntity, "expires_at must be in the future", `value="ci"`, `<option value="auditor" selected>`, `value="2001-01-01T00:00"`)
	ann.Post(page, "do", "create", "name", "ci", "role", "auditor", "expires_at", "").Want(t, "no time", http.StatusUnprocessableEntity)
	made := ann.Post(page, "do", "create", "name", "ci <1>", "role", "auditor", "expires_at", tomorrow())
	secret := secretIn(t, made, "alt_")
	list := ann.Get(page)
	list.Want(t, "list", http.StatusOK, "ci &lt;1&gt;", "auditor").WantNone(t, "list", secret)
	for name, p := range map[string]*servicetest.Person{"carl": carl, "bob": bob} {
		p.Get(page).WantNone(t, name, "ci &lt;1&gt;")
		p.Post(page, "do", "delete", "token_id", tokenIn(t, list)).Want(t, name, http.StatusNotFound)
	}
	if got := useToken(t, s, secret); got != http.StatusOK {
		t.Errorf("the token: got %d", got)
	}
	ann.Post(page, "do", "delete", "token_id", tokenIn(t, list)).Want(t, "delete", http.StatusSeeOther)
	if got := useToken(t, s, secret); got != http.StatusUnauthorized {
		t.Errorf("a deleted token: got %d", got)
	}
}
