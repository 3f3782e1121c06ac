package console_test

import (
	"fmt"
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
	found := regexp.MustCompile(`<a href="(/console/members/mem_[^"]+)" title="[^\n]*\n<span class="quiet small"><bdi>` + regexp.QuoteMeta(email)).FindStringSubmatch(list.Body)
	if found == nil {
		t.Fatalf("%s is not a member: %s", email, list.Body)
	}
	return found[1]
}

// invitationOf returns the id of an address's open invitation.
func invitationOf(t *testing.T, p *servicetest.Person, email string) string {
	t.Helper()
	list := p.Get("/console/members")
	found := regexp.MustCompile(`(?s)<bdi>` + regexp.QuoteMeta(email) + `</bdi></span>.*?name="invitation" value="(inv_[^"]+)"`).FindStringSubmatch(list.Body)
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
		Want(t, "no address", http.StatusUnprocessableEntity, "The e-mail address is malformed", "no address</textarea>", `<option value="auditor" selected>`)
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
	ann.Get("/console/members?notice=invitation-revoked").Want(t, "revoked", http.StatusOK, "The invitation is revoked")
	ann.Get("/console/members").WantNone(t, "after it is revoked", "dora@red.example")
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

// Several people are invited at once: the form shows what will happen to each address, and all that is wrong, before anybody is
// invited. Sent again, it invites nobody twice.
func TestInviteMany(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	invitations := func() (n int) {
		var found struct{ Invitations []struct{ Role string } }
		ann.Call(http.MethodGet, "/v1/id/orgs/"+s.Red.ID+"/invitations", nil, &found)
		for _, i := range found.Invitations {
			if i.Role != "auditor" {
				t.Errorf("got the role %q", i.Role)
			}
		}
		return len(found.Invitations)
	}
	linkIn(t, ann.Post("/console/members", "do", "invite", "email", "carl@red.example", "role", "auditor"))
	shownIn := regexp.MustCompile(`name="shown" value="([0-9a-f]{64})"`)
	// inviteAll sends the form of a preview of the same role and addresses.
	inviteAll := func(p *servicetest.Person, email, role string) servicetest.Answer {
		t.Helper()
		shown := shownIn.FindStringSubmatch(p.Post("/console/members", "do", "check-invitees", "email", email, "role", role).Body)
		if shown == nil {
			t.Fatal("the preview does not identify what it shows")
		}
		return p.Post("/console/members", "do", "invite-all", "email", email, "role", role, "shown", shown[1])
	}
	mixed := "\"Keller, \\\"D; \" <dora@red.example>, eve@red.example;<b>no address\r\n" + s.Red.Owner + "\ncarl@red.example\nEVE@red.example, two@@red.example"
	for _, do := range []string{"invite", "invite-all"} {
		ann.Post("/console/members", "do", do, "email", mixed, "role", "auditor").
			Want(t, do, http.StatusOK, "2 to correct", "&lt;b&gt;no address", "two@@red.example", "This is no e-mail address.", "Already a member; not invited", "Already has an open invitation; not invited again",
				"Already in this list; invited once", "dora@red.example", "will be invited", `<option value="auditor" selected>`).
			WantNone(t, do, `value="invite-all"`)
		if n := invitations(); n != 1 {
			t.Fatalf("%s: got %d invitations", do, n)
		}
	}
	good := "Dora <dora@red.example>, eve@red.example\n" + s.Red.Owner + "\ncarl@red.example"
	ann.Post("/console/members", "do", "invite", "email", good, "role", "auditor").
		Want(t, "preview", http.StatusOK, "Invite 2 as auditor", `value="invite-all"`, "dora@red.example").WantNone(t, "preview", "to correct")
	bob.Post("/console/members", "do", "invite", "email", good, "role", "auditor").
		Want(t, "the other organization", http.StatusOK, "Invite 4 as auditor").WantNone(t, "the other organization", "Already")
	inviteAll(ann, good, "boss").Want(t, "an unknown role", http.StatusUnprocessableEntity, "role")
	// What was shown is what is sent: another role, another address, or none shown at all, and the form is shown again.
	shown := shownIn.FindStringSubmatch(ann.Post("/console/members", "do", "invite", "email", good, "role", "auditor").Body)[1]
	for name, form := range map[string][]string{
		"another role":    {"email", good, "role", "admin", "shown", shown},
		"another address": {"email", good + ",fay@red.example", "role", "auditor", "shown", shown},
		"one less":        {"email", "eve@red.example\n" + s.Red.Owner, "role", "auditor", "shown", shown},
		"nothing shown":   {"email", good, "role", "auditor"},
	} {
		ann.Post("/console/members", append([]string{"do", "invite-all"}, form...)...).
			Want(t, name, http.StatusOK, "Nobody is invited yet.", `value="invite-all"`).WantNone(t, name, "#token=")
	}
	ann.Post("/console/members", "do", "check-invitees", "email", "eve@red.example", "role", "auditor").
		Want(t, "one that is checked again", http.StatusOK, "Invite 1 as auditor").WantNone(t, "one that is checked again", "#token=")
	if n := invitations(); n != 1 {
		t.Fatalf("got %d invitations, want 1", n)
	}
	done := inviteAll(ann, good, "auditor")
	done.Want(t, "invited", http.StatusOK, "2 invited as auditor", "Already a member; not invited", "Already has an open invitation; not invited again")
	if !strings.Contains(done.Body, "/start.js") {
		t.Error("the links have no buttons that copy them")
	}
	if links := regexp.MustCompile(`<code class="secret" title="Link for [a-z]+@red.example">http[^<]*#token=[^<]+</code>`).FindAllString(done.Body, -1); len(links) != 2 {
		t.Errorf("got the links %q", links)
	}
	ann.Post("/console/members", "do", "invite-all", "email", good, "role", "auditor", "shown", shown).
		Want(t, "again", http.StatusOK, "Nobody is invited yet.", "Already has an open invitation").WantNone(t, "again", "#token=", `value="invite-all"`)
	if n := invitations(); n != 3 {
		t.Errorf("got %d invitations, want 3", n)
	}
	s.SignIn(s.Red.Join("max", "approver")).Post("/console/members", "do", "invite-all", "email", good, "role", "auditor").
		Want(t, "an approver", http.StatusForbidden, "Your role does not allow this")

	list := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("p%d@red.example", i))
		}
		return strings.Join(all, ",")
	}
	ann.Post("/console/members", "do", "invite", "email", list(100), "role", "auditor").Want(t, "the most", http.StatusOK, "Invite 100 as auditor")
	for _, do := range []string{"invite", "invite-all"} {
		ann.Post("/console/members", "do", do, "email", list(101), "role", "auditor").
			Want(t, "too many", http.StatusUnprocessableEntity, "Must have at most 100 addresses, and has 101")
	}
	ann.Post("/console/members", "do", "invite-all", "email", " ,\n", "role", "auditor").Want(t, "none", http.StatusUnprocessableEntity, "Is required")

	// A limit that is reached on the way ends the work, and the rest can be sent again.
	s.Limit(s.Red, map[string]any{"statements_per_minute": 5})
	part := inviteAll(ann, list(20), "auditor")
	part.Want(t, "a limit", http.StatusOK, "Too many changes: at most 5 in a minute.", "Not tried.", "#token=")
	if n := strings.Count(part.Body, "#token="); n < 1 || n > 6 || invitations() != 3+n || strings.Count(part.Body, "Not tried.") != 20-n-1 {
		t.Errorf("got %d links and %d invitations", n, invitations())
	} else {
		part.Want(t, "the rest", http.StatusOK, fmt.Sprintf("%d not invited", 20-n), `name="role" value="auditor"`,
			fmt.Sprintf(">\np%d@red.example\np%d@red.example\n", n, n+1), "p19@red.example</textarea>")
	}
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
		for _, part := range []string{"dora@red.example", `href="?new=1">Invite`} {
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
