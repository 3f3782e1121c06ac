package console_test

import (
	"html/template"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

func TestMain(m *testing.M) { os.Exit(servicetest.Main(m)) }

// shows fails unless a page has the status and contains the texts.
func shows(t *testing.T, what string, got servicetest.Answer, status int, texts ...string) {
	t.Helper()
	if got.Status != status {
		t.Errorf("%s: got %d %s, want %d", what, got.Status, got.Body, status)
	}
	for _, text := range texts {
		if !strings.Contains(got.Body, text) {
			t.Errorf("%s: %q is missing in %s", what, text, got.Body)
		}
	}
}

// redirects fails unless an answer redirects to an address.
func redirects(t *testing.T, what string, got servicetest.Answer, address string) {
	t.Helper()
	if to := got.Header.Get("Location"); got.Status != http.StatusSeeOther || to != address {
		t.Errorf("%s: got %d to %q, want %q: %s", what, got.Status, to, address, got.Body)
	}
}

const newPassword = "another password for tests"

// A user changes name, mails and password without JavaScript. A rejected form does not affect the others.
func TestProfile(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, other := s.SignIn(s.Red.Owner), s.SignIn(s.Red.Owner)
	redirects(t, "a stranger", s.Stranger().Get("/account"), "/signin?return=%2Faccount")
	hostile := `<script>alert(1)</script>" onclick="x`
	redirects(t, "name", ann.Post("/account", "do", "profile", "display_name", hostile), "/account?notice=saved")
	page := ann.Get("/account?notice=saved")
	shows(t, "name", page, http.StatusOK, "The changes are saved.", "&lt;script&gt;alert(1)&lt;/script&gt;&#34; onclick=&#34;x")
	if strings.Contains(page.Body, "<script>alert") || strings.Contains(page.Body, `value="yes" checked`) {
		t.Errorf("got %s", page.Body)
	}
	redirects(t, "mails", ann.Post("/account", "do", "profile", "display_name", "Ann", "approval_mail", "yes"), "/account?notice=saved")
	shows(t, "mails", ann.Get("/account"), http.StatusOK, `value="yes" checked`)
	shows(t, "a long name", ann.Post("/account", "do", "profile", "display_name", strings.Repeat("a", 101)), http.StatusUnprocessableEntity, strings.Repeat("a", 101))

	wrong := ann.Post("/account", "do", "password", "current_password", "not the one <>", "new_password", newPassword)
	shows(t, "wrong password", wrong, http.StatusUnauthorized, "Wrong password", `value="Ann"`, `value="yes" checked`)
	if strings.Contains(wrong.Body, "not the one") || strings.Contains(wrong.Body, newPassword) {
		t.Errorf("the page contains a password: %s", wrong.Body)
	}
	shows(t, "weak password", ann.Post("/account", "do", "password", "current_password", servicetest.Password, "new_password", "password123"),
		http.StatusUnprocessableEntity, "most common")
	redirects(t, "password", ann.Post("/account", "do", "password", "current_password", servicetest.Password, "new_password", newPassword), "/account?notice=saved")
	shows(t, "this session goes on", ann.Get("/account"), http.StatusOK)
	redirects(t, "the others end", other.Get("/account"), "/signin?return=%2Faccount")
	if got := s.SignIn(s.Blue.Owner).Get("/account").Body; strings.Contains(got, "red.example") || strings.Contains(got, `"Ann"`) {
		t.Errorf("the other organization: got %s", got)
	}
}

var (
	sessionID = regexp.MustCompile(`name="session_id" value="([^"]+)"`)
	code      = regexp.MustCompile(`<code class="secret">([^<]+)</code>`)
)

// A user sees the sessions and login events of the account, and ends sessions.
func TestSessions(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, second, third, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Red.Owner), s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	page := ann.Get("/account/sessions")
	found := sessionID.FindAllStringSubmatch(page.Body, -1)
	shows(t, "sessions", page, http.StatusOK, "this one", "signed in", "127.0.0.1", "Go-http-client")
	if len(found) != 2 {
		t.Fatalf("got %d sessions of others: %s", len(found), page.Body)
	}
	shows(t, "another account", bob.Post("/account/sessions", "do", "end", "session_id", found[0][1]), http.StatusNotFound)
	redirects(t, "end one", ann.Post("/account/sessions", "do", "end", "session_id", found[0][1]), "/account/sessions?notice=session-ended")
	shows(t, "once more", ann.Post("/account/sessions", "do", "end", "session_id", found[0][1]), http.StatusNotFound)
	ended, other := third, second // the newest is listed first, unless both have signed in within one millisecond
	if third.Get("/account").Status == http.StatusOK {
		ended, other = second, third
	}
	redirects(t, "the first", ended.Get("/account"), "/signin?return=%2Faccount")
	shows(t, "the other", other.Get("/account"), http.StatusOK)
	redirects(t, "end all", ann.Post("/account/sessions", "do", "end-others"), "/account/sessions?notice=sessions-ended")
	redirects(t, "the other", other.Get("/account"), "/signin?return=%2Faccount")
	shows(t, "this one", ann.Get("/account/sessions"), http.StatusOK, "sessions ended")
	shows(t, "another account", bob.Get("/account"), http.StatusOK)
}

// Recovery codes are shown once, and a stale session requires a step-up first.
func TestRecoveryCodes(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	shows(t, "none yet", ann.Get("/account/factors"), http.StatusOK, "has no recovery code", "has no passkey")
	made := ann.Post("/account/factors", "do", "codes")
	codes := code.FindAllStringSubmatch(made.Body, -1)
	if len(codes) != 10 || made.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("got %d codes, %v", len(codes), made.Header)
	}
	page := ann.Get("/account/factors")
	shows(t, "left", page, http.StatusOK, "10 codes are left")
	if strings.Contains(page.Body, codes[0][1]) {
		t.Error("the code is shown a second time")
	}
	shows(t, "a passkey without a name", ann.Post("/account/factors", "do", "prepare"), http.StatusUnprocessableEntity, "Give the passkey a name")
	prepared := ann.Post("/account/factors", "do", "prepare", "passkey_name", `Phone "1"`)
	shows(t, "prepared", prepared, http.StatusOK, "data-options=", "Phone &#34;1&#34;", "does not run here")
	shows(t, "none made", ann.Post("/account/factors", "do", "add", "passkey_name", "Phone"), http.StatusUnprocessableEntity, "has created no passkey")
	shows(t, "no JSON", ann.Post("/account/factors", "do", "add", "passkey_name", "Phone", "passkey", "{"), http.StatusUnprocessableEntity, "can&#39;t be read")
	shows(t, "no passkey", ann.Post("/account/factors", "do", "add", "passkey_name", "Phone", "passkey", `{"id":"x"}`), http.StatusUnprocessableEntity, "was refused")
	shows(t, "an unknown one", ann.Post("/account/factors", "do", "remove", "passkey_id", "x"), http.StatusNotFound)
}

// The page of an account with an unproved address explains what to do.
func TestUnprovedAddress(t *testing.T) {
	t.Parallel()
	const note = "Nobody has proved that this address is yours"
	s := servicetest.New(t)
	ann, carl := s.SignIn(s.Red.Owner), s.SignIn(s.Red.Join("carl", "auditor"))
	shows(t, "unproved", carl.Get("/account"), http.StatusOK, note)
	if strings.Contains(ann.Get("/account").Body, note) {
		t.Error("ann's address is unproved although the operator proved it")
	}
	s.Prove("carl@red.example")
	if strings.Contains(s.SignIn("carl@red.example").Get("/account").Body, note) {
		t.Error("carl's address is proved")
	}
}

// A user leaves an organization after checking a box. The last owner cannot.
func TestLeave(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, carl := s.SignIn(s.Red.Owner), s.SignIn(s.Red.Join("carl", "auditor"))
	shows(t, "the last owner", ann.Post("/account", "do", "leave", "sure", "yes"), http.StatusConflict, "needs an owner")
	shows(t, "without the box", carl.Post("/account", "do", "leave"), http.StatusUnprocessableEntity, "Check the box")
	redirects(t, "leave", carl.Post("/account", "do", "leave", "sure", "yes"), "/signin?notice=member-left")
	redirects(t, "outside", carl.Get("/account"), "/signin?return=%2Faccount")
	shows(t, "no member", carl.Post("/signin", "do", "sign-in", "email", "carl@red.example", "password", servicetest.Password),
		http.StatusForbidden, "Not a member of the organization")
}

// Users create their own organizations if the operator allows it, and otherwise see no form.
func TestFoundOrganization(t *testing.T) {
	t.Parallel()
	closed := servicetest.New(t)
	bob := closed.SignIn(closed.Blue.Owner)
	if page := bob.Get("/account").Body; strings.Contains(page, "An organization of your own") {
		t.Errorf("got %s", page)
	}
	shows(t, "closed", bob.Post("/account", "do", "found", "name", "Own", "slug", "own"), http.StatusForbidden, "Only the operator can create organizations here")

	s := servicetest.New(t, "--signup", "members")
	ann := s.SignIn(s.Red.Owner)
	shows(t, "a taken name", ann.Post("/account", "do", "found", "name", "Own <b>", "slug", "blue"), http.StatusConflict, "slug is taken", "Own &lt;b&gt;")
	made := ann.Post("/account", "do", "found", "name", "Own <b>", "slug", "own")
	shows(t, "made", made, http.StatusOK, "<bdi>Own &lt;b&gt; is ready</bdi>", "apl_live_", "<figcaption>own-agt_", "APS_SLUG=&#39;own&#39;")
	if made.Header.Get("Cache-Control") != "no-store" || !strings.Contains(made.Body, "· Own &lt;b&gt; ·") {
		t.Errorf("got %v %s", made.Header, made.Body)
	}
	shows(t, "inside", ann.Get("/account"), http.StatusOK, "Your account · Own &lt;b&gt; ·")
}

// Cross-site forms change nothing.
func TestCrossSiteForms(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t, "--signup", "members")
	ann, other := s.SignIn(s.Red.Owner), s.SignIn(s.Red.Owner)
	found := sessionID.FindStringSubmatch(ann.Get("/account/sessions").Body)
	before := ann.Get("/account").Body + ann.Get("/account/factors").Body
	for _, form := range [][]string{
		{"/account", "do", "profile", "display_name", "Eve"},
		{"/account", "do", "email", "email", "eve@evil.example"},
		{"/account", "do", "password", "current_password", servicetest.Password, "new_password", newPassword},
		{"/account", "do", "switch", "organization_id", s.Red.ID},
		{"/account", "do", "found", "name", "Eve", "slug", "eve"},
		{"/account", "do", "leave", "sure", "yes"},
		{"/account/factors", "do", "prepare", "passkey_name", "Eve"},
		{"/account/factors", "do", "add", "passkey_name", "Eve", "passkey", "{}"},
		{"/account/factors", "do", "remove", "passkey_id", "x"},
		{"/account/factors", "do", "codes"},
		{"/account/sessions", "do", "end", "session_id", found[1]},
		{"/account/sessions", "do", "end-others"},
	} {
		if got := ann.PostFromAnotherSite(form[0], form[1:]...); got.Status != http.StatusForbidden || !strings.Contains(got.Body, "Request of another origin") {
			t.Errorf("%v: got %d %s", form, got.Status, got.Body)
		}
	}
	if after := ann.Get("/account").Body + ann.Get("/account/factors").Body; after != before {
		t.Errorf("got %s, want %s", after, before)
	}
	shows(t, "the other session", other.Get("/account"), http.StatusOK)
	shows(t, "the password", s.SignIn(s.Red.Owner).Get("/account"), http.StatusOK)
}

// A user names a deputy without JavaScript, who then sees the payloads and votes, and whose vote names the user on every page and
// in CSV. The deputy and an admin can end it.
func TestDeputyPages(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, eve, carl, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Red.Join("eve", "approver")), s.SignIn(s.Red.Join("carl", "member")), s.SignIn(s.Blue.Owner)
	requireApproval(ann, 1, "money leaves")
	asked := s.Red.Ask(map[string]any{"trace_id": "deputy"})
	path := "/console/approvals/" + asked.ID
	shows(t, "before", carl.Get(path), http.StatusOK, "Your role does not vote. Owners, admins and approvers do, and their deputies.")
	if body := carl.Get("/account").Body; strings.Contains(body, `id="deputy"`) {
		t.Error("a member may name a deputy")
	}
	option := regexp.MustCompile(`<option value="(mem_[a-z0-9]+)">carl`).FindStringSubmatch(eve.Get("/account").Body)
	if option == nil {
		t.Fatalf("carl is not offered: %s", eve.Get("/account").Body)
	}
	if body := eve.Get("/account").Body; strings.Count(body, `<option value="mem_`) != 1 {
		t.Errorf("members whose role votes are offered as deputies: %s", body)
	}
	name := func(until string) servicetest.Answer {
		return eve.Post("/account", "do", "deputy", "deputy", option[1], "from", "", "until", until)
	}
	shows(t, "too long", name("2099-01-01T00:00"), http.StatusUnprocessableEntity, "until must be at most 90 days after from", `value="2099-01-01T00:00"`)
	shows(t, "past", name("2001-01-01T00:00"), http.StatusUnprocessableEntity, "until must be in the future and after from")
	redirects(t, "named", name(tomorrow()), "/account?notice=deputy-named")
	shows(t, "the user", eve.Get("/account"), http.StatusOK, "votes in your place from", "Replace the deputy")
	shows(t, "the deputy", carl.Get("/account"), http.StatusOK, "You vote in place of <b>", "Give it back")
	shows(t, "the member's page", ann.Get("/console/members/"+option[1]), http.StatusOK, "in place of <b>")
	if body := bob.Get("/account").Body; strings.Contains(body, "votes in your place") {
		t.Error("another organization sees the deputy")
	}
	shows(t, "the approval", carl.Get(path), http.StatusOK, `value="approve"`)
	shows(t, "the inbox", carl.Get("/console/approvals"), http.StatusOK, asked.ID)
	want(t, "the deputy votes", carl.Post(path, "do", "approve", "action_digest", asked.ActionDigest), http.StatusSeeOther)
	shows(t, "the vote", ann.Get(path), http.StatusOK, "</bdi> for <bdi>")
	shows(t, "the audit", ann.Get("/console/audit"), http.StatusOK, "as deputy of eve", "as deputy of eve")

	shows(t, "a member ends it", s.SignIn(s.Red.Join("max", "approver")).Post("/account", "do", "end-deputy", "membership", option[1]), http.StatusNotFound)
	redirects(t, "the deputy ends it", carl.Post("/account", "do", "end-deputy", "membership", eveMembership(t, carl)), "/account?notice=deputy-ended")
	shows(t, "ended", carl.Get(path), http.StatusOK, "for")
	if body := eve.Get("/account").Body; strings.Contains(body, "votes in your place") {
		t.Error("the deputy is still shown")
	}

	from := time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04")
	redirects(t, "later", eve.Post("/account", "do", "deputy", "deputy", option[1], "from", from, "until", tomorrow()), "/account?notice=deputy-named")
	shows(t, "the later deputy", carl.Get("/account"), http.StatusOK, "You will vote in place of <b>")
	redirects(t, "given back before", carl.Post("/account", "do", "end-deputy", "membership", eveMembership(t, carl)), "/account?notice=deputy-ended")
	redirects(t, "named again", name(tomorrow()), "/account?notice=deputy-named")
	redirects(t, "the deputy votes on their own", ann.Post("/console/members/"+option[1], "do", "role", "role", "approver"), "/console/members/"+option[1]+"?notice=saved")
	const why = "The deputy's own role votes, so the deputy has a vote of their own."
	shows(t, "the user of a deputy who rests", eve.Get("/account"), http.StatusOK, "does not vote in your place from", template.HTMLEscapeString(why),
		"Nobody can be your deputy now")
	shows(t, "the deputy who rests", carl.Get("/account"), http.StatusOK, "You do not vote in place of <b>", "Give it back")
	shows(t, "the page of the member", ann.Get("/console/members/"+option[1]), http.StatusOK, "does not vote in place of <b>")
	redirects(t, "given back while it rests", carl.Post("/account", "do", "end-deputy", "membership", eveMembership(t, carl)), "/account?notice=deputy-ended")
}

// eveMembership returns the membership of the represented member that the account page of the deputy names.
func eveMembership(t *testing.T, deputy *servicetest.Person) string {
	t.Helper()
	found := regexp.MustCompile(`name="membership" value="(mem_[a-z0-9]+)"`).FindStringSubmatch(deputy.Get("/account").Body)
	if found == nil {
		return ""
	}
	return found[1]
}
