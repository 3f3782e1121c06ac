package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// An owner changes the settings without JavaScript. Another organization keeps its settings.
func TestOrganization(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	const page = "/console/settings"
	ann.Get(page).Want(t, "page", http.StatusOK, s.Red.Origin, s.Red.LogKey, s.Red.ID, "Key to pin", "Events this month", "Agents")
	ann.Get(page+"/retention").Want(t, "retention", http.StatusOK, `name="retention_days" type="number" value="0"`)
	bob.Get(page).WantNone(t, "blue", s.Red.ID, s.Red.LogKey)
	change := []string{"do", "change", "name", "Red <1>", "disclosure", "record", "publish_policies", "yes"}
	ann.Post(page, change...).Want(t, "change", http.StatusSeeOther)
	ann.Get(page+"?notice=saved").Want(t, "changed", http.StatusOK, "Red &lt;1&gt;", `<option value="record" selected>`,
		`name="publish_policies" type="checkbox" value="yes" checked`, "The changes are saved.")
	ann.Post(page, "do", "change", "name", "", "disclosure", "full").Want(t, "no name", http.StatusUnprocessableEntity, "name must have 1 to 200 characters",
		`<option value="full" selected>`, `aria-invalid="true" autofocus aria-describedby="field-change-name-error "`)
	ann.Post(page, "do", "change", "name", "Red", "disclosure", "all").Want(t, "a wrong level", http.StatusUnprocessableEntity)
	ann.Post(page, "do", "two-people", "two_person_policy", "yes").Want(t, "two people", http.StatusSeeOther)
	ann.Get(page+"/approvals").Want(t, "two people", http.StatusOK, `name="two_person_policy" type="checkbox" value="yes" checked`)
	ann.Post(page+"/sign-in", "do", "sign-in", "require", "passkey").Want(t, "a sign-in of another way", http.StatusConflict, "Sign in that way first", `<option value="passkey" selected>`)
	ann.Post(page, "do", "sign-in", "require", "oidc:none").Want(t, "an unknown provider", http.StatusUnprocessableEntity)
	ann.Post(page, "do", "sign-in", "require", "").Want(t, "any sign-in", http.StatusSeeOther)
	for _, days := range []string{"", "x", "1.5", "-1", "36501"} {
		ann.Post(page, "do", "retain", "retention_days", days).Want(t, "days "+days, http.StatusUnprocessableEntity, "retention_days must be a whole number from 0 to 36500")
	}
	ann.Post(page, "do", "retain", "retention_days", "30", "legal_hold", "yes").Want(t, "retain", http.StatusSeeOther)
	ann.Get(page+"/retention").Want(t, "retained", http.StatusOK, `value="30"`, `name="legal_hold" type="checkbox" value="yes" checked`)
	s.SignIn(s.Red.Join("max", "member")).Get(page+"/retention").Want(t, "for a member", http.StatusOK, "30 days; a legal hold suspends all erasure")
	bob.Get(page).Want(t, "blue", http.StatusOK, "Blue")
	bob.Get(page+"/retention").Want(t, "blue", http.StatusOK, `name="retention_days" type="number" value="0"`)
}

// Admins cannot change an owner's rules, and the other roles can change nothing.
func TestOrganizationRoles(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	const page = "/console/settings"
	for role, may := range map[string]bool{"admin": true, "policy_editor": false, "approver": false, "auditor": false, "member": false} {
		p := s.SignIn(s.Red.Join(role, role))
		got := p.Get(page)
		got.Want(t, role, http.StatusOK, s.Red.LogKey)
		if strings.Contains(got.Body, `value="change"`) != may || strings.Contains(got.Body, `value="retain"`) {
			t.Errorf("%s: may change %v: %s", role, may, got.Body)
		}
		for _, do := range [][]string{{"two-people"}, {"sign-in", "require", ""}, {"retain", "retention_days", "0"}} {
			p.Post(page, append([]string{"do"}, do...)...).Want(t, role+" "+do[0], http.StatusForbidden, "Your role does not allow this")
		}
		if !may {
			p.Post(page, "do", "change", "name", "x", "disclosure", "full").Want(t, role, http.StatusForbidden, "Your role does not allow this")
		}
	}
}
