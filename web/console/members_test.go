package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// pageOf returns the address of a member's page.
func pageOf(t *testing.T, p *servicetest.Person, email string) string {
	t.Helper()
	list := p.Get("/console/members")
	found := regexp.MustCompile(`<a href="(/console/members/mem_[^"]+)">[^\n]*\n<td><bdi>` + regexp.QuoteMeta(email)).FindStringSubmatch(list.Body)
	if found == nil {
		t.Fatalf("%s is not a member: %s", email, list.Body)
	}
	return found[1]
}

// invitationOf returns the id of an address's open invitation.
func invitationOf(t *testing.T, p *servicetest.Person, email string) string {
	t.Helper()
	list := p.Get("/console/members")
	found := regexp.MustCompile(`(?s)<tr><td><bdi>` + regexp.QuoteMeta(email) + `</bdi>.*?name="invitation" value="(inv_[^"]+)"`).FindStringSubmatch(list.Body)
	if found == nil {
		t.Fatalf("%s has no invitation: %s", email, list.Body)
	}
	return found[1]
}

// linkIn returns the token of the link that a page shows once.
func linkIn(t *testing.T, a servicetest.Answer) string {
	t.Helper()
	found := regexp.MustCompile(`class="secret">[^<]*/[a-z]+#token=([^<]+)<`).FindStringSubmatch(a.Body)
	if a.Status != http.StatusOK || found == nil || a.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("no link: %d %s", a.Status, a.Body)
	}
	return found[1]
}

// A user is invited, the link is replaced, and the invitation is revoked and accepted.
func TestInvitations(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	ann.Post("/console/members", "do", "invite", "email", "no address", "role", "auditor").
		Want(t, "no address", http.StatusUnprocessableEntity, "The e-mail address is malformed", `value="no address"`, `<option value="auditor" selected>`)
	ann.Post("/console/members", "do", "invite", "email", s.Red.Owner, "role", "auditor").
		Want(t, "a member", http.StatusConflict, "The address is one of a member")
	first := linkIn(t, ann.Post("/console/members", "do", "invite", "email", "carl@red.example", "role", "approver"))
	ann.Post("/console/members", "do", "invite", "email", "carl@red.example", "role", "approver").
		Want(t, "again", http.StatusConflict, "The address has an open invitation")
	ann.Get("/console/members").WantNone(t, "the list", first)
	name := invitationOf(t, ann, "carl@red.example")
	bob.Post("/console/members", "do", "revoke", "invitation", name).Want(t, "blue revokes", http.StatusNotFound)
	bob.Get("/console/members").WantNone(t, "blue", "carl@red.example", "ann@red.example")
	second := linkIn(t, ann.Post("/console/members", "do", "resend", "invitation", name))
	if first == second {
		t.Error("the second link equals the first")
	}
	s.Stranger().Call(http.MethodPost, "/v1/id/invitations/accept", map[string]string{"token": second, "display_name": "<i>Carl</i>", "password": servicetest.Password}, nil)
	ann.Get(pageOf(t, ann, "carl@red.example")).Want(t, "carl", http.StatusOK, "&lt;i&gt;Carl&lt;/i&gt;", "approver", "active")
	linkIn(t, ann.Post("/console/members", "do", "invite", "email", "dora@red.example", "role", "owner"))
	ann.Post("/console/members", "do", "revoke", "invitation", invitationOf(t, ann, "dora@red.example")).Want(t, "revoke", http.StatusSeeOther)
	ann.Get("/console/members?notice=invitation-revoked").Want(t, "revoked", http.StatusOK, "The invitation is revoked", "No invitation is open.")
	ann.Post("/console/members", "do", "resend", "invitation", "inv_none").Want(t, "none", http.StatusNotFound)
}

// A member's role is changed, the member is suspended and removed, and the last owner remains.
func TestMembers(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	email := s.Red.Join("carl", "member")
	ann, bob, carl := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner), s.SignIn(email)
	page, own := pageOf(t, ann, email), pageOf(t, ann, s.Red.Owner)
	bob.Get(page).Want(t, "blue", http.StatusNotFound)
	bob.Post(page, "do", "remove").Want(t, "blue removes", http.StatusNotFound)
	for _, do := range [][]string{{"do", "role", "role", "admin"}, {"do", "suspend"}, {"do", "leave"}} {
		name := do[1]
		want, words := http.StatusConflict, "The organization needs an owner"
		got := ann.Post(own, do...)
		got.Want(t, "the last owner: "+name, want, words)
	}
	ann.Post(page, "do", "role", "role", "king").Want(t, "king", http.StatusUnprocessableEntity, "role must be one of")
	ann.Post(page, "do", "role", "role", "admin").Want(t, "role", http.StatusSeeOther)
	carl.Post(own, "do", "remove").Want(t, "an admin removes an owner", http.StatusForbidden, "Only an owner may appoint, change or remove an owner")
	carl.Post(page, "do", "role", "role", "owner").Want(t, "an admin makes an owner", http.StatusForbidden, "Only an owner")
	carl.Get(own).WantNone(t, "an admin at an owner", `value="remove"`, `value="role"`)
	ann.Post(page, "do", "suspend").Want(t, "suspend", http.StatusSeeOther)
	ann.Get(page).Want(t, "suspended", http.StatusOK, "suspended", "End the suspension")
	carl.Get(page).Want(t, "a suspended member", http.StatusSeeOther)
	ann.Post(page, "do", "resume").Want(t, "resume", http.StatusSeeOther)
	ann.Post(page, "do", "leave").Want(t, "another leaves", http.StatusUnprocessableEntity, "own membership")
	ann.Post(page, "do", "remove").Want(t, "remove", http.StatusSeeOther)
	ann.Get(page).Want(t, "removed", http.StatusNotFound)
	ann.Post(page, "do", "remove").Want(t, "remove again", http.StatusNotFound)
}

// Each role sees the members. Only owners and admins see invitations and forms; each member may leave.
func TestMemberRoles(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	linkIn(t, ann.Post("/console/members", "do", "invite", "email", "dora@red.example", "role", "member"))
	name, own := invitationOf(t, ann, "dora@red.example"), pageOf(t, ann, s.Red.Owner)
	for role, may := range map[string]bool{"admin": true, "policy_editor": false, "approver": false, "auditor": false, "member": false} {
		email := s.Red.Join(role, role)
		p := s.SignIn(email)
		list := p.Get("/console/members")
		list.Want(t, role, http.StatusOK, s.Red.Owner, email)
		for _, part := range []string{"dora@red.example", `value="invite"`} {
			if strings.Contains(list.Body, part) != may {
				t.Errorf("%s sees %s: %v, want %v", role, part, !may, may)
			}
		}
		page := pageOf(t, p, email)
		if !may {
			for _, form := range [][]string{{"/console/members", "invite"}, {"/console/members", "resend"}, {"/console/members", "revoke"}, {own, "role"}, {own, "suspend"}, {own, "remove"}} {
				p.Post(form[0], "do", form[1], "invitation", name, "email", "x@red.example", "role", "member").Want(t, role+" "+form[1], http.StatusForbidden, "Your role does not allow this")
			}
		}
		p.Get(page).Want(t, role+" at the own page", http.StatusOK, "Leave the organization")
		left := p.Post(page, "do", "leave")
		left.Want(t, role+" leaves", http.StatusSeeOther)
		if got := left.Header.Get("Location"); got != "/signin?notice=member-left" {
			t.Errorf("%s: got %s", role, got)
		}
		p.Get("/console/members").Want(t, role+" has left", http.StatusSeeOther)
	}
	s.Stranger().Get(own).Want(t, "a stranger", http.StatusSeeOther)
}
