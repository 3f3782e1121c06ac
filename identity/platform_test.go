package identity_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
	"github.com/agentledger/agentledger/tlog"
)

func TestCreateOrganization(t *testing.T) {
	w := newWorld(t)
	red, blue := w.organization("red"), w.organization("blue")
	for _, m := range []made{red, blue} {
		if want := "log.example/ledger/o/" + m.OrganizationID; m.Origin != want {
			t.Errorf("origin: got %q, want %q", m.Origin, want)
		}
		vkey, err := tlog.ParseVerifierKey(m.LogKey)
		if err != nil || vkey.Name() != m.Origin {
			t.Errorf("log_key %q: %v", m.LogKey, err)
		}
		seed, err := base64.StdEncoding.DecodeString(m.Agent.PrivateKey)
		if err != nil || len(seed) != ed25519.SeedSize {
			t.Fatalf("private key: %d bytes, %v", len(seed), err)
		}
		public := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
		if got := base64.StdEncoding.EncodeToString(public); got != m.Agent.PublicKey {
			t.Errorf("public key: got %s, want %s", m.Agent.PublicKey, got)
		}
		if !strings.HasPrefix(m.Agent.AgentID, "agt_") || m.Agent.KeyID == "" || m.MembershipID == "" {
			t.Errorf("got %+v", m)
		}
		caller, err := w.orgs.Authenticate(t.Context(), m.IngestKey.Secret)
		if err != nil || caller.Organization.String() != m.OrganizationID || caller.KeyID != m.IngestKey.KeyID {
			t.Errorf("ingest key: got %+v, %v", caller, err)
		}
	}
	if red.OrganizationID == blue.OrganizationID || red.Agent.AgentID == blue.Agent.AgentID || red.MembershipID == blue.MembershipID {
		t.Errorf("shared: %+v and %+v", red, blue)
	}
}

func TestCreateOrganizationWithEverything(t *testing.T) {
	w := newWorld(t)
	const organization = "8D0F6D0A-5B1C-4C55-9A52-0C8D7C6F1E11"
	body := `{"name":"Näme","slug":"red-1","admin_email":"Ann@Example.com","admin_password":"` + password + `","plan":"free","organization_id":"` + organization + `","disclosure":"commitment"}`
	var m made
	w.decode(w.platform("POST", organizations, body), 201, &m)
	if m.OrganizationID != strings.ToLower(organization) || m.Slug != "red-1" {
		t.Errorf("got %+v", m)
	}
	tenant, err := w.orgs.BySlug(t.Context(), "red-1")
	if err != nil {
		t.Fatal(err)
	}
	is, err := w.orgs.Settings(t.Context(), w.State(t, tenant))
	if err != nil || is.Name != "Näme" || is.Plan != "free" || is.Disclosure != id.DiscloseCommitment {
		t.Errorf("got %+v, %v", is, err)
	}
}

func TestPlatformSecret(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	w := newWorld(t, func(o *identity.Options) { o.Now = func() time.Time { return now } })
	m := w.organization("red")
	for name, header := range map[string][]string{
		"none":   {},
		"empty":  {"X-Platform-Secret", ""},
		"wrong":  {"X-Platform-Secret", platformSecret + "x"},
		"cut":    {"X-Platform-Secret", platformSecret[1:]},
		"bearer": {"Authorization", "Bearer " + platformSecret},
	} {
		for _, route := range [][2]string{{"POST", organizations}, {"PATCH", organizations + "/" + m.OrganizationID}, {"POST", "/v1/id/platform/accounts/password"}} {
			now = now.Add(time.Minute) // the earlier guesses do not count any more
			answer := w.call(route[0], route[1], `not even JSON`, header...)
			answers(t, name, answer, 401, refusal("Invalid platform secret"))
			if got := answer.Header().Get("WWW-Authenticate"); got != "" {
				t.Errorf("%s: WWW-Authenticate %q", name, got)
			}
		}
	}
}

func TestCreateOrganizationRefuses(t *testing.T) {
	w := newWorld(t)
	m := w.organization("red")
	good := map[string]string{"name": `"Name"`, "slug": `"green"`, "admin_email": `"new@example.com"`, "admin_password": `"` + password + `"`}
	body := func(change string, value string) string {
		members := []string{}
		for _, name := range []string{"name", "slug", "admin_email", "admin_password"} {
			if name != change {
				members = append(members, fmt.Sprintf("%q:%s", name, good[name]))
			}
		}
		if value != "" {
			members = append(members, fmt.Sprintf("%q:%s", change, value))
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	const slug = "slug must be 3 to 63 of a-z, 0-9 and single hyphens inside, and not a UUID"
	const name = "name must have 1 to 200 characters"
	const mail = "The e-mail address is malformed"
	const pass = "The password must have at least 10 characters and at most 1024 bytes"
	for title, tc := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"no body":                  {"", 422, "The body is not valid JSON"},
		"array":                    {"[]", 422, "The body must be a JSON object"},
		"too large":                {strings.Repeat(" ", 64<<10+1), 413, "The body is too large"},
		"unknown member":           {body("slugg", `"x"`), 422, `Member \"slugg\" is not known`},
		"no name":                  {body("name", ""), 422, name},
		"empty name":               {body("name", `""`), 422, name},
		"long name":                {body("name", `"`+strings.Repeat("é", 201)+`"`), 422, name},
		"control character":        {body("name", `"a\u0000"`), 422, "name must not have control characters"},
		"name of another type":     {body("name", `1`), 422, `Member \"name\" has another type or form`},
		"no slug":                  {body("slug", ""), 422, slug},
		"capitals":                 {body("slug", `"Green"`), 422, slug},
		"two hyphens":              {body("slug", `"gr--een"`), 422, slug},
		"UUID as slug":             {body("slug", `"8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11"`), 422, slug},
		"slug taken":               {body("slug", `"red"`), 409, "slug is taken"},
		"no e-mail":                {body("admin_email", ""), 422, mail},
		"malformed e-mail":         {body("admin_email", `"ann"`), 422, mail},
		"short password":           {body("admin_password", `"short"`), 422, pass},
		"nine characters":          {body("admin_password", `"x7K-q2m_9"`), 422, pass},
		"common password":          {body("admin_password", `"Password123"`), 422, "The password is one of the 100,000 most common"},
		"address as password":      {body("admin_password", `"New@example.com"`), 422, "The password must not be the e-mail address or the part before its @"},
		"name as password":         {strings.Replace(body("admin_password", `"blue harbour"`), `"Name"`, `"Blue Harbour"`, 1), 422, "The password must not be the organization's name"},
		"unknown plan":             {body("plan", `"gold"`), 422, "plan is not known"},
		"malformed id":             {body("organization_id", `"x"`), 422, `Member \"organization_id\" has another type or form`},
		"id taken":                 {body("organization_id", `"`+m.OrganizationID+`"`), 409, "organization_id is taken"},
		"id taken, in upper case":  {body("organization_id", `"`+strings.ToUpper(m.OrganizationID)+`"`), 409, "organization_id is taken"},
		"unknown disclosure":       {body("disclosure", `"all"`), 422, `Member \"disclosure\" has another type or form`},
		"disclosure of other type": {body("disclosure", `true`), 422, `Member \"disclosure\" has another type or form`},
	} {
		answers(t, title, w.platform("POST", organizations, tc.body), tc.status, refusal(tc.want))
	}
	answer := w.call("POST", organizations, body("", ""), "X-Platform-Secret", platformSecret, "Content-Type", "text/plain")
	answers(t, "media type", answer, 415, refusal("Content-Type must be application/json"))
	if _, err := w.accounts.Find(t.Context(), "new@example.com"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a refused call made an account: %v", err)
	}
}

// A known address belongs to whoever uses it. A password for it is refused; without one, the organization is offered,
// and the person has no access to it before signing in to it.
func TestKnownAdmin(t *testing.T) {
	w := newWorld(t)
	if red := w.organization("red"); red.Account != "created" {
		t.Errorf("got account %q, want created", red.Account)
	}
	for _, given := range []string{"another password", password} { // even the correct one: the caller may have guessed it
		answers(t, "with a password", w.platform("POST", organizations, `{"name":"X","slug":"blue","admin_email":"ANN@example.com","admin_password":"`+given+`"}`), 409,
			`{"error":"The account already exists: omit admin_password, and the person accepts by signing in","code":"account_known"}`)
	}
	var blue, green made
	w.decode(w.platform("POST", organizations, `{"name":"BLUE","slug":"blue","admin_email":"ANN@example.com"}`), 201, &blue)
	w.decode(w.platform("POST", organizations, `{"name":"GREEN","slug":"green","admin_email":"bob@example.com","admin_password":"`+password+`"}`), 201, &green)
	if blue.Account != "known" || green.Account != "created" || blue.MembershipID == "" {
		t.Errorf("got accounts %q and %q, want known and created", blue.Account, green.Account)
	}
	tenant, err := w.orgs.BySlug(t.Context(), "blue")
	if err != nil {
		t.Fatal(err)
	}
	who, err := w.accounts.Find(t.Context(), email)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.accounts.Membership(t.Context(), tenant, who.ID); !fault.Is(err, fault.NotFound) { // the lookup of votes and sessions
		t.Errorf("a membership that was not accepted: got %v", err)
	}
	before := w.signedIn(email, password)
	if before.Organization.Slug != "red" || !slices.Equal(before.Organizations, []place{before.Organization, {blue.OrganizationID, "blue", "BLUE", "owner", true}}) {
		t.Errorf("before: got %+v", before)
	}
	var there signedIn
	w.Pass(time.Minute)
	w.decode(w.call("POST", login, `{"email":"`+email+`","password":"`+password+`","organization_id":"`+blue.OrganizationID+`"}`), 200, &there)
	if want := (place{blue.OrganizationID, "blue", "BLUE", "owner", false}); there.Organization != want || there.User.MembershipID != blue.MembershipID {
		t.Errorf("accepted: got %+v, want %+v", there, want)
	}
	after := w.signedIn(email, password)
	if after.Organization.Slug != "red" || len(after.Organizations) != 2 || after.Organizations[1].Offered {
		t.Errorf("after: got %+v", after)
	}
	if m, err := w.accounts.Membership(t.Context(), tenant, who.ID); err != nil || m.Role != "owner" {
		t.Errorf("got %+v, %v", m, err)
	}
	answers(t, "a stranger's", w.call("POST", login, `{"email":"bob@example.com","password":"`+password+`","organization_id":"`+blue.OrganizationID+`"}`), 403, refusal("Not a member of the organization"))
}

// A repeated call is not refused because of what the failed call left behind. A call by another person is.
func TestAccountOfAFailedCall(t *testing.T) {
	w := newWorld(t)
	const body = `{"name":"X","slug":"red","admin_email":"ann@example.com","admin_password":"` + password + `"}`
	w.Store.Fail(func(storage.Batch) storagetest.Failure { return storagetest.Refused })
	if answer := w.platform("POST", organizations, body); answer.Code != 503 {
		t.Fatalf("got %d %s", answer.Code, answer.Body)
	}
	w.Store.Fail(nil)
	answers(t, "another password", w.platform("POST", organizations, `{"name":"X","slug":"blue","admin_email":"ann@example.com","admin_password":"another password"}`), 409,
		`{"error":"The account already exists: omit admin_password, and the person accepts by signing in","code":"account_known"}`)
	var red made
	w.decode(w.platform("POST", organizations, body), 201, &red)
	if got := w.signedIn(email, password); red.Account != "created" || got.Organization.Slug != "red" {
		t.Errorf("got %q, %+v", red.Account, got)
	}
}

// An account that is in no organization signs in to the one that was offered to it.
func TestOnlyAnOffer(t *testing.T) {
	w := newWorld(t)
	if _, _, err := w.accounts.Ensure(t.Context(), email, password); err != nil {
		t.Fatal(err)
	}
	var red made
	w.decode(w.platform("POST", organizations, `{"name":"RED","slug":"red","admin_email":"ann@example.com"}`), 201, &red)
	if got := w.signedIn(email, password); red.Account != "known" || got.Organization != (place{red.OrganizationID, "red", "RED", "owner", false}) {
		t.Errorf("got %q, %+v", red.Account, got)
	}
}

func TestAdminWithoutAPassword(t *testing.T) {
	w := newWorld(t)
	const body = `{"name":"X","slug":"red","admin_email":"ann@example.com"}`
	if answer := w.platform("POST", organizations, body); answer.Code != 201 {
		t.Fatalf("got %d %s", answer.Code, answer.Body)
	}
	for _, p := range []string{"", password} {
		answers(t, "no password", w.signIn(email, p), 401, refusal("Invalid e-mail address or password"))
	}
	answers(t, "set", w.platform("POST", setPassword, `{"email":"ann@example.com","password":"`+password+`"}`), 204, "")
	if got := w.signedIn(email, password).Organization.Slug; got != "red" {
		t.Errorf("got %q", got)
	}
	answers(t, "unknown", w.platform("POST", setPassword, `{"email":"bob@example.com","password":"`+password+`"}`), 404, refusal("Not found"))
	answers(t, "short", w.platform("POST", setPassword, `{"email":"ann@example.com","password":"x"}`), 422,
		refusal("The password must have at least 10 characters and at most 1024 bytes"))
}

// A password is checked against the names of all of the person's organizations, but of no others.
func TestSetPasswordRefusesNames(t *testing.T) {
	w := newWorld(t)
	for slug, admin := range map[string]string{"red-harbour": email, "blue-harbour": email, "green-harbour": "bob@example.com"} {
		body := fmt.Sprintf(`{"name":%q,"slug":%q,"admin_email":%q}`, strings.ReplaceAll(slug, "-", " "), slug, admin)
		if answer := w.platform("POST", organizations, body); answer.Code != 201 {
			t.Fatalf("got %d %s", answer.Code, answer.Body)
		}
	}
	const name = "The password must not be the organization's name"
	for _, p := range []string{"red harbour", "Blue Harbour"} {
		answers(t, p, w.platform("POST", setPassword, `{"email":"`+email+`","password":"`+p+`"}`), 422, refusal(name))
	}
	answers(t, "a neighbour's", w.platform("POST", setPassword, `{"email":"`+email+`","password":"green harbour"}`), 204, "")
}

func TestSetPasswordEndsSessions(t *testing.T) {
	w := newWorld(t)
	w.organization("red")
	cookie := w.cookie(w.signIn(email, password))
	w.platform("POST", "/v1/id/platform/accounts/password", `{"email":"ann@example.com","password":"another password"}`)
	answers(t, "old session", w.call("GET", "/v1/id/auth/me", "", "Cookie", cookie), 401, refusal("Not signed in"))
}

func TestOneOfManyCallsForASlugWins(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	statuses := map[int]int{}
	var group sync.WaitGroup
	for i := range 12 {
		group.Go(func() {
			answer := w.platform("POST", organizations, fmt.Sprintf(`{"name":"X","slug":"red","admin_email":"e%d@example.com"}`, i))
			mu.Lock()
			defer mu.Unlock()
			statuses[answer.Code]++
		})
	}
	group.Wait()
	if statuses[http.StatusCreated] != 1 || statuses[http.StatusConflict] != 11 {
		t.Errorf("got %v, want one 201 and eleven 409", statuses)
	}
}

// The store fails between the claims and the ledger; the repeated call succeeds.
func TestRepeatedAfterAFailure(t *testing.T) {
	for failure, want := range map[storagetest.Failure]string{
		storagetest.Refused:     "unavailable",
		storagetest.RequestLost: "outcome_unknown",
	} {
		w := newWorld(t)
		body := `{"name":"X","slug":"red","admin_email":"ann@example.com","organization_id":"8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11"}`
		w.Store.Fail(func(storage.Batch) storagetest.Failure { return failure })
		answer := w.platform("POST", organizations, body)
		if answer.Code != 503 || !strings.Contains(answer.Body.String(), `"code":"`+want+`"`) || answer.Header().Get("Retry-After") == "" {
			t.Errorf("got %d %s", answer.Code, answer.Body)
		}
		w.Store.Fail(nil)
		if answer := w.platform("POST", organizations, body); answer.Code != 201 {
			t.Errorf("repeated: got %d %s", answer.Code, answer.Body)
		}
		answers(t, "once more", w.platform("POST", organizations, body), 409, refusal("organization_id is taken"))
	}
}

func TestChangeOrganization(t *testing.T) {
	w := newWorld(t)
	m, other := w.organization("red"), w.organization("blue")
	limited := func(plan string, active bool, limit, others string) string {
		return fmt.Sprintf(`{"organization_id":%q,"slug":"red","name":"RED","plan":%q,"active":%v,"limits":{"events_per_month":%s,%s},"disclosure":"record"}`,
			m.OrganizationID, plan, active, limit, others)
	}
	is := func(plan string, active bool, limit string) string {
		return limited(plan, active, limit, `"agents":null,"ingest_keys":null,"policies":null,"policy_versions":null,"statements_per_minute":null`)
	}
	for _, step := range []struct{ name, body, want string }{
		{"nothing", `{}`, is("enterprise", true, "null")},
		{"plan", `{"plan":"team"}`, is("team", true, "null")},
		{"limit", `{"limits":{"events_per_month":5}}`, is("team", true, "5")},
		{"no limit named", `{"limits":{}}`, is("team", true, "5")},
		{"inactive", `{"active":false}`, is("team", false, "5")},
		{"other limits", `{"limits":{"agents":3,"ingest_keys":4,"policies":5,"policy_versions":6,"statements_per_minute":7}}`,
			limited("team", false, "5", `"agents":3,"ingest_keys":4,"policies":5,"policy_versions":6,"statements_per_minute":7`)},
		{"some of them", `{"limits":{"agents":9,"ingest_keys":4,"policies":null,"policy_versions":null}}`,
			limited("team", false, "5", `"agents":9,"ingest_keys":4,"policies":null,"policy_versions":null,"statements_per_minute":7`)},
		{"none of them", `{"limits":{"agents":null,"ingest_keys":null,"policies":null,"statements_per_minute":null}}`, is("team", false, "5")},
		{"all", `{"plan":"free","active":true,"limits":{"events_per_month":null}}`, is("free", true, "null")},
	} {
		answers(t, step.name, w.platform("PATCH", organizations+"/"+strings.ToUpper(m.OrganizationID), step.body), 200, step.want)
	}
	tenant, err := w.orgs.BySlug(t.Context(), "red")
	if err != nil {
		t.Fatal(err)
	}
	statements := w.Audit(t, tenant)
	names := []string{}
	for _, s := range statements {
		if s.Kind != "ledger_settings_changed" || s.Principal != "operator" {
			t.Errorf("got %+v", s)
		}
		names = append(names, s.Payload[strings.Index(s.Payload, `"names"`):])
	}
	want := []string{`"names":["plan"]}`, `"names":["events_per_month"]}`, `"names":["active"]}`,
		`"names":["agents","ingest_keys","policies","policy_versions","statements_per_minute"]}`, `"names":["agents","policies","policy_versions"]}`,
		`"names":["agents","ingest_keys","statements_per_minute"]}`, `"names":["active","events_per_month","plan"]}`}
	if !slices.Equal(names, want) {
		t.Errorf("stated: got %v, want %v", names, want)
	}
	blue, err := w.orgs.BySlug(t.Context(), id.Slug(other.Slug))
	if err != nil || len(w.Audit(t, blue)) != 0 {
		t.Errorf("the other organization: %v", err)
	}
}

func TestChangeOrganizationRefuses(t *testing.T) {
	w := newWorld(t)
	known := organizations + "/" + w.organization("red").OrganizationID
	const limit = "events_per_month must be 1 to 1000000000000, or null for the plan's"
	for name, tc := range map[string]struct {
		path, body string
		status     int
		want       string
	}{
		"unknown":        {organizations + "/8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11", `{}`, 404, "Not found"},
		"malformed":      {organizations + "/Red!", `{}`, 404, "Not found"},
		"unknown plan":   {known, `{"plan":"gold"}`, 422, "plan is not known"},
		"unknown member": {known, `{"slug":"x"}`, 422, `Member \"slug\" is not known`},
		"unknown limit":  {known, `{"limits":{"x":1}}`, 422, `Member \"limits/x\" is not known`},
		"zero":           {known, `{"limits":{"events_per_month":0}}`, 422, limit},
		"negative":       {known, `{"limits":{"events_per_month":-1}}`, 422, `Member \"limits/events_per_month\" has another type or form`},
		"text":           {known, `{"limits":{"events_per_month":"1"}}`, 422, `Member \"limits/events_per_month\" has another type or form`},
		"huge":           {known, `{"limits":{"events_per_month":1000000000001}}`, 422, limit},
		"no agents":      {known, `{"limits":{"agents":0}}`, 422, "agents must be 1 to 1000000000, or null for the plan's"},
		"too fast":       {known, `{"limits":{"statements_per_minute":60001}}`, 422, "statements_per_minute must be 1 to 60000, or null for the plan's"},
		"no such limit":  {known, `{"limits":{"seats":1}}`, 422, `Member \"limits/seats\" is not known`},
		"active":         {known, `{"active":"no"}`, 422, `Member \"active\" has another type or form`},
	} {
		answers(t, name, w.platform("PATCH", tc.path, tc.body), tc.status, refusal(tc.want))
	}
	answer := w.platform("DELETE", known, "")
	if answer.Code != 405 || answer.Header().Get("Allow") != "GET, PATCH" {
		t.Errorf("got %d, Allow %q", answer.Code, answer.Header().Get("Allow"))
	}
}

// Members of an inactive organization can still sign in and read.
func TestSignInToAnInactiveOrganization(t *testing.T) {
	w := newWorld(t)
	m := w.organization("red")
	cookie := w.cookie(w.signIn(email, password))
	if answer := w.platform("PATCH", organizations+"/"+m.OrganizationID, `{"active":false}`); answer.Code != 200 {
		t.Fatalf("got %d %s", answer.Code, answer.Body)
	}
	if got := w.signedIn(email, password).Organization.Slug; got != "red" {
		t.Errorf("got %q", got)
	}
	if answer := w.call("GET", "/v1/id/auth/me", "", "Cookie", cookie); answer.Code != 200 {
		t.Errorf("an older session: got %d %s", answer.Code, answer.Body)
	}
}
