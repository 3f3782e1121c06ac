package operator_test

import (
	"html"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

func TestMain(m *testing.M) { os.Exit(servicetest.Main(m)) }

// operate returns a service with its identity listener and its operator.
func operate(t testing.TB, more ...string) (*servicetest.Service, *servicetest.Person) {
	t.Helper()
	s := servicetest.New(t, more...).Operated()
	p := s.Stranger()
	p.Post("/operator/signin", "do", "sign-in", "secret", servicetest.Secret).Want(t, "sign in", http.StatusSeeOther)
	return s, p
}

const red = "/operator/organizations/red"

// The operator creates an organization, whose secrets are shown once and work.
func TestFoundOrganization(t *testing.T) {
	s, p := operate(t)
	p.Get("/operator").Want(t, "the list", http.StatusOK, "Red", "Blue", "enterprise", ">Active</span>")
	p.Post("/operator/new", "do", "found", "name", "Green <1>", "slug", "red", "admin_email", "eve@green.example", "admin_password", servicetest.Password, "disclosure", "full").
		Want(t, "a slug that is taken", http.StatusConflict, "slug is taken", "Green &lt;1&gt;", `<option value="full" selected>`).
		WantNone(t, "a slug that is taken", servicetest.Password)
	p.Post("/operator/new", "do", "found", "name", "Green", "slug", "gr een", "admin_email", "eve@green.example", "disclosure", "full").Want(t, "a wrong slug", http.StatusUnprocessableEntity)
	p.Post("/operator/new", "do", "found", "name", "Green", "slug", "green", "admin_email", s.Red.Owner, "admin_password", "another password", "disclosure", "full").
		Want(t, "a known account", http.StatusConflict, "The account already exists")
	got := p.Post("/operator/new", "do", "found", "name", "Green <1>", "slug", "green", "admin_email", "eve@green.example", "admin_password", servicetest.Password, "disclosure", "full", "plan", "enterprise")
	got.Want(t, "found", http.StatusOK, "a new account", "/operator/organizations/green", "apl_live_", "shown only once").WantNone(t, "found", servicetest.Password)
	key := regexp.MustCompile(`id="ingest-key">([^<]+)<`).FindStringSubmatch(got.Body)
	if key == nil {
		t.Fatalf("no ingest key: %s", got.Body)
	}
	p.Get("/operator").Want(t, "the list", http.StatusOK, "Green &lt;1&gt;").WantNone(t, "the list", key[1])
	p.Get("/operator/organizations/green").Want(t, "its page", http.StatusOK, "Green &lt;1&gt;", "full").WantNone(t, "its page", key[1])
	p.Post("/operator/new", "do", "found", "name", "Grey", "slug", "new", "admin_email", s.Red.Owner, "disclosure", "record").Want(t, "offer", http.StatusOK, "the membership is offered")
	p.Get("/operator/organizations/new").Want(t, "a slug like a page", http.StatusOK, "Grey")
}

// The operator changes the plan, limits, activity and required sign-in of one organization and of no other.
func TestChangeOrganization(t *testing.T) {
	s, p := operate(t)
	s.Red.Send("evt-1", nil)
	p.Get(red).Want(t, "the page", http.StatusOK, s.Red.ID, "full", "<dt>Required sign-in</dt><dd>none</dd>", s.Red.Origin)
	p.Get("/operator/organizations/"+s.Red.ID).Want(t, "by id", http.StatusOK, s.Red.ID)
	p.Get("/operator/organizations/none").Want(t, "none", http.StatusNotFound)
	p.Post("/operator/organizations/none", "do", "switch-off").Want(t, "none", http.StatusNotFound)
	p.Post(red, "do", "plan", "plan", "gold").Want(t, "an unknown plan", http.StatusUnprocessableEntity, "plan is not known", `value="gold"`)
	p.Post(red, "do", "plan", "plan", "enterprise", "agents", "many").Want(t, "no number", http.StatusUnprocessableEntity, "Agents must be a whole number", `value="many"`)
	p.Post(red, "do", "plan", "plan", "enterprise", "agents", "0").Want(t, "too few", http.StatusUnprocessableEntity, "agents must be 1 to 1000000000")
	p.Post(red, "do", "plan", "plan", "enterprise", "agents", "7", "events_per_month", "5000").Want(t, "limits", http.StatusSeeOther)
	p.Get(red+"?notice=saved").Want(t, "limits", http.StatusOK, "The changes are saved.", `name="agents" type="text" value="7"`, "1 of 5,000")
	p.Get("/operator").Want(t, "the list", http.StatusOK, "1 of 5,000")
	p.Post(red, "do", "plan", "plan", "enterprise").Want(t, "the plan's", http.StatusSeeOther)
	p.Get(red).Want(t, "the plan's", http.StatusOK, `name="agents" type="text" value=""`).WantNone(t, "the plan's", "of 5,000")
	p.Post(red, "do", "switch-off").Want(t, "off", http.StatusSeeOther)
	p.Get(red).Want(t, "off", http.StatusOK, "It is inactive", `value="switch-on"`)
	p.Get("/operator").Want(t, "the list", http.StatusOK, ">Inactive</span>")
	p.Get("/operator/organizations/blue").Want(t, "blue", http.StatusOK, `value="switch-off"`).WantNone(t, "blue", "It is inactive", s.Red.ID)
	p.Post(red, "do", "switch-on").Want(t, "on", http.StatusSeeOther)
	p.Get(red).WantNone(t, "on", "It is inactive")
}

// The operator lifts a required sign-in that locks the owners out.
func TestFreeSignIn(t *testing.T) {
	main := servicetest.NewWithProvider(t)
	owner := main.SignInByProvider(main.Red.Owner)
	owner.Call("POST", "/v1/id/auth/step-up", map[string]string{"password": servicetest.Password}, nil)
	owner.Call("PATCH", "/v1/console/organization", map[string]any{"sign_in": map[string]string{"require": "oidc:company"}}, nil)
	s := main.Operated()
	p := s.Stranger()
	p.Post("/operator/signin", "do", "sign-in", "secret", servicetest.Secret).Want(t, "sign in", http.StatusSeeOther)
	p.Get(red).Want(t, "required", http.StatusOK, "oidc:company", `value="sign-in"`)
	p.Post(red, "do", "sign-in").Want(t, "take away", http.StatusSeeOther)
	p.Get(red).Want(t, "taken away", http.StatusOK, "<dt>Required sign-in</dt><dd>none</dd>").WantNone(t, "taken away", `value="sign-in"`)
}

// Keys, index, witnesses and clock of a log.
func TestOperateLog(t *testing.T) {
	_, p := operate(t)
	p.Post(red, "do", "retire-key").Want(t, "nothing to retire", http.StatusConflict, "Red")
	p.Post(red, "do", "new-key").Want(t, "a new key", http.StatusOK, "A new log key", "Both keys sign now", "/operator/organizations/red")
	p.Post(red, "do", "new-key").Want(t, "two sign", http.StatusConflict)
	p.Post(red, "do", "retire-key").Want(t, "retire", http.StatusOK, "The older log key is retired", "Signs nothing from size")
	for do, notice := range map[string]string{"reindex": "reindexing", "ask": "witnesses-none"} {
		got := p.Post(red, "do", do).Want(t, do, http.StatusSeeOther)
		if to := got.Header.Get("Location"); to != red+"?notice="+notice {
			t.Errorf("%s leads to %q", do, to)
		}
	}
	p.Post(red, "do", "clock", "reason", "<b>x</b>").Want(t, "not ahead", http.StatusConflict, "<details open>", "&lt;b&gt;x&lt;/b&gt;")
	p.Post(red, "do", "clock").Want(t, "no reason", http.StatusUnprocessableEntity, "reason")
}

// Accounts are found only by address, and can be recovered.
func TestAccounts(t *testing.T) {
	s, p := operate(t)
	p.Get("/operator/accounts").Want(t, "the form", http.StatusOK, ">Find</button>").WantNone(t, "the form", s.Red.Owner)
	p.Get("/operator/accounts?email=%3Cb%3E%40x").Want(t, "malformed", http.StatusUnprocessableEntity, "The e-mail address is malformed", "&lt;b&gt;@x")
	p.Get("/operator/accounts?email=none@red.example").Want(t, "none", http.StatusOK, "No account has the address", "none@red.example")
	page := p.Get("/operator/accounts?email="+s.Red.Owner).Want(t, "ann", http.StatusOK, s.Red.Owner, "passkeys: 0, recovery codes: 0", "(owner)", red)
	page.WantNone(t, "ann", "blue")
	account := regexp.MustCompile(`name="account" value="([^"]+)"`).FindStringSubmatch(page.Body)
	if account == nil {
		t.Fatalf("no id: %s", page.Body)
	}
	p.Post("/operator/accounts?email="+s.Red.Owner, "do", "set-password", "email", s.Red.Owner, "password", "short").
		Want(t, "too short", http.StatusUnprocessableEntity, "password").WantNone(t, "too short", `value="short"`)
	p.Post("/operator/accounts?email="+s.Red.Owner, "do", "set-password", "email", "none@red.example", "password", "quite another one").Want(t, "nobody", http.StatusNotFound)
	got := p.Post("/operator/accounts", "do", "set-password", "email", s.Red.Owner, "password", "quite another one").Want(t, "set", http.StatusSeeOther)
	if to := got.Header.Get("Location"); to != "/operator/accounts?email=ann%40red.example&notice=password-given" {
		t.Errorf("leads to %q", to)
	}
	p.Get(got.Header.Get("Location")).Want(t, "set", http.StatusOK, "The password is set, and all sessions")
	main := *s
	main.URL = publicURL(t, p)
	main.Stranger().Post("/signin", "do", "sign-in", "email", s.Red.Owner, "password", servicetest.Password).Want(t, "the old one", http.StatusUnauthorized)
	main.Stranger().Post("/signin", "do", "sign-in", "email", s.Red.Owner, "password", "quite another one").Want(t, "the new one", http.StatusSeeOther)
	p.Post("/operator/accounts", "do", "remove-factors", "email", s.Red.Owner, "account", account[1]).Want(t, "factors", http.StatusSeeOther)
	p.Post("/operator/accounts", "do", "remove-factors", "email", s.Red.Owner, "account", "acc_none").Want(t, "no account", http.StatusNotFound)
}

// publicURL returns the address of the main listener that the service page shows.
func publicURL(t testing.TB, p *servicetest.Person) string {
	t.Helper()
	found := regexp.MustCompile(`<dt>Address</dt><dd><a href="([^"]+)/">`).FindStringSubmatch(p.Get("/operator/service").Body)
	if found == nil {
		t.Fatal("the page of the service has no address")
	}
	return found[1]
}

// numbers change between two reports.
var numbers = regexp.MustCompile(`[0-9.]+`)

// wantStatus fails unless the page of the service shows what `agentledger status` prints: each finding, and then each part, in the
// same order. Numbers may differ.
func wantStatus(t *testing.T, s *servicetest.Service, p *servicetest.Person, findings int) {
	t.Helper()
	command := exec.CommandContext(t.Context(), servicetest.Program(t), "status", "--server", s.IdentityURL)
	command.Env = append(os.Environ(), "AGENTLEDGER_PLATFORM_SECRET="+servicetest.Secret)
	out, err := command.Output()
	printed := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(printed) < 10 {
		t.Fatalf("%v: got %s", err, out)
	}
	// The page begins a part or a finding with a capital letter.
	shown := numbers.ReplaceAllString(strings.ToLower(html.UnescapeString(p.Get("/operator/service").Body)), "#")
	place, found := 0, 0
	want := func(text string) {
		t.Helper()
		at := strings.Index(shown[place:], numbers.ReplaceAllString(strings.ToLower(text), "#"))
		if at < 0 {
			t.Errorf("the page lacks %q, or shows it in another place: %s", text, shown)
			return
		}
		place += at
	}
	for _, line := range printed[1:] {
		if do, is := strings.CutPrefix(line, "    do: "); is {
			want("To do: " + do)
			continue
		}
		if severity, rest, is := strings.Cut(line, ": "); is && (severity == "page" || severity == "ticket") {
			_, summary, _ := strings.Cut(rest, ": ")
			want(summary)
			found++
			continue
		}
		want("<dt>" + strings.TrimSpace(line[:14]) + "</dt><dd>" + line[14:])
	}
	if found < findings {
		t.Errorf("status prints %d findings, want %d: %s", found, findings, out)
	}
}

// The operator's pages show what the command prints, the findings first.
func TestService(t *testing.T) {
	s, p := operate(t)
	wantStatus(t, s, p, 0)
	p.Get("/operator/service").Want(t, "the service", http.StatusOK, "Ready", "none is kept").WantNone(t, "the service", `value="accept-clock"`)
	p.Get("/operator").Want(t, "the list", http.StatusOK, "Ready", "Last backup", "Disk of", "New organization")
	p.Post("/operator/service", "do", "accept-clock").Want(t, "accept", http.StatusSeeOther)
	s.Restart("--read-only")
	s = s.Operated()
	p = s.Stranger()
	p.Post("/operator/signin", "do", "sign-in", "secret", servicetest.Secret).Want(t, "sign in", http.StatusSeeOther)
	wantStatus(t, s, p, 1)
	for _, path := range []string{"/operator", "/operator/service"} {
		p.Get(path).Want(t, path, http.StatusOK, "Read-only", "The service is read-only.", "To do: see /help/runbooks#AgentledgerReadOnlyMode")
	}
}

// The operator's journey in a real browser loads nothing from other hosts.
func TestJourneyInChromium(t *testing.T) {
	s := servicetest.New(t).Operated()
	b := s.Browser()
	b.Visit("/operator")
	b.Fill("secret", "wrong")
	b.Press(`button[value="sign-in"]`)
	if got := b.Text("#problem"); got != "Invalid platform secret" {
		t.Errorf("got %q", got)
	}
	b.Messages() // the browser's own, about the answer 401
	b.Fill("secret", servicetest.Secret)
	b.Press(`button[value="sign-in"]`)
	b.KeepPictures("organizations")
	b.Press(`a[href="/operator/new"]`)
	b.Fill("name", servicetest.Hostile()[0])
	b.Fill("slug", "green")
	b.Fill("admin_email", "eve@green.example")
	b.KeepPictures("new")
	b.Press(`button[value="found"]`)
	if got := b.Text("#ingest-key"); !strings.HasPrefix(got, "apl_live_") {
		t.Errorf("got %q", got)
	}
	b.KeepPictures("founded")
	for _, path := range []string{"/operator", "/operator/organizations/green"} {
		b.Visit(path)
		b.WantHarmless(servicetest.Hostile()[0])
	}
	b.KeepPictures("organization")
	b.Visit("/operator/accounts?email=eve@green.example")
	b.KeepPictures("accounts")
	b.Visit("/operator/service")
	b.KeepPictures("service")
	var cookies string
	b.Must(`return document.cookie`, &cookies)
	if cookies != "" {
		t.Errorf("a script reads %q", cookies)
	}
	b.Press(`form.me button`)
	if got := b.Text("#notice"); got != "You are signed out." {
		t.Errorf("got %q", got)
	}
	b.WantQuiet()
}
