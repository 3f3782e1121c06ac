package identity_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/quota"
)

// person is a person who is signed in to an organization.
type person struct {
	email, membership, account, cookie string
}

// team is an organization with its members by name; ann is the owner.
type team struct {
	*world
	made
	path   string // of the organization
	people map[string]*person
}

func (w *world) team(slug string, roles ...string) *team {
	w.t.Helper()
	t := &team{world: w, made: w.organization(slug), people: map[string]*person{}}
	t.path = "/v1/id/orgs/" + t.OrganizationID
	t.enter("ann", email)
	for _, role := range roles {
		t.join(role, role)
	}
	return t
}

// address returns the email address of a member.
func address(name string) string { return name + "@example.com" }

// enter signs a member in.
func (t *team) enter(name, email string) *person {
	t.t.Helper()
	answer := t.call("POST", login, `{"email":"`+email+`","password":"`+password+`","organization_id":"`+t.OrganizationID+`"}`)
	var s signedIn
	t.decode(answer, 200, &s)
	p := &person{email, s.User.MembershipID, s.Account.AccountID, t.cookie(answer)}
	t.people[name] = p
	return p
}

// as sends a call with the session of a member, or without a session for "".
func (t *team) as(name, method, path, body string, header ...string) (int, map[string]any) {
	t.t.Helper()
	if p := t.people[name]; p != nil {
		header = append(header, "Cookie", p.cookie)
	}
	answer := t.call(method, path, body, header...)
	var members map[string]any
	if answer.Body.Len() > 0 {
		if err := json.Unmarshal(answer.Body.Bytes(), &members); err != nil {
			t.t.Fatalf("%s %s: got %s: %v", method, path, answer.Body, err)
		}
	}
	return answer.Code, members
}

// must is as that requires a status.
func (t *team) must(status int, name, method, path, body string) map[string]any {
	t.t.Helper()
	code, members := t.as(name, method, path, body)
	if code != status {
		t.t.Fatalf("%s %s as %q: got %d %v, want %d", method, path, name, code, members, status)
	}
	return members
}

// refuses checks the complete refusal of a call.
func (t *team) refuses(name, method, path, body string, status int, code, message string) {
	t.t.Helper()
	got, members := t.as(name, method, path, body)
	want := map[string]any{"error": message}
	if code != "" {
		want["code"] = code
	}
	if got != status || len(members) != len(want) || members["error"] != message || code != "" && members["code"] != code {
		t.t.Errorf("%s %s as %q: got %d %v, want %d %v", method, path, name, got, members, status, want)
	}
}

// invite invites an address as ann and returns the token in the link.
func (t *team) invite(email, role string) (invitation, token string) {
	t.t.Helper()
	sent := t.must(201, "ann", "POST", t.path+"/invitations", `{"email":"`+email+`","role":"`+role+`"}`)
	_, token, ok := strings.Cut(sent["url"].(string), "#token=")
	if !ok || sent["mailed"] != false {
		t.t.Fatalf("got %v", sent)
	}
	return sent["invitation_id"].(string), token
}

// join makes a person a member by an invitation.
func (t *team) join(name, role string) *person {
	t.t.Helper()
	_, token := t.invite(address(name), role)
	t.must(200, "", "POST", accept, `{"token":"`+token+`","password":"`+password+`"}`)
	return t.enter(name, address(name))
}

// member returns the path of a person's membership.
func (t *team) member(name string) string { return t.path + "/members/" + t.people[name].membership }

const (
	accept   = "/v1/id/invitations/accept"
	preview  = "/v1/id/invitations/preview"
	noRight  = "Your role does not allow this"
	noOwners = "Only an owner may appoint, change or remove an owner"
	noOwner  = "The organization needs an owner: make another member one first"
)

// kinds returns the statements about members and their principals.
func (t *team) kinds() (kinds []string) {
	t.t.Helper()
	names := map[string]string{}
	for name, p := range t.people {
		names[p.account] = name
	}
	for _, statement := range t.Audit(t.t, t.tenant()) {
		if strings.HasPrefix(statement.Kind, "ledger_member") || strings.HasPrefix(statement.Kind, "ledger_invitation") {
			kinds = append(kinds, strings.TrimPrefix(statement.Kind, "ledger_")+" by "+names[statement.Principal])
		}
	}
	return kinds
}

func (t *team) tenant() id.Tenant {
	t.t.Helper()
	organization, err := id.ParseOrganization(t.OrganizationID)
	if err != nil {
		t.t.Fatal(err)
	}
	tenant, err := t.orgs.ByID(t.t.Context(), organization)
	if err != nil {
		t.t.Fatal(err)
	}
	return tenant
}

func TestMembersAreListedChangedAndRemoved(t *testing.T) {
	w := newWorld(t)
	red, blue := w.team("red"), w.team("blue")
	w.Pass(time.Second)
	bob := red.join("bob", "approver")
	w.Pass(time.Second)
	eve := red.join("eve", "admin")
	listed := red.must(200, "bob", "GET", red.path+"/members", "")["members"].([]any)
	if len(listed) != 3 {
		t.Fatalf("got %v", listed)
	}
	second := listed[1].(map[string]any)
	if second["membership_id"] != bob.membership || second["account_id"] != bob.account || second["email"] != bob.email ||
		second["role"] != "approver" || second["suspended"] != false || second["member_since"] == nil || second["display_name"] != "" || second["email_proved"] != false || len(second) != 8 {
		t.Errorf("got %v", second)
	}
	page := red.must(200, "bob", "GET", red.path+"/members?limit=1&after="+bob.membership, "")
	if page["next"] != nil || page["members"].([]any)[0].(map[string]any)["email"] != eve.email {
		t.Errorf("second page: got %v", page)
	}
	if page := red.must(200, "bob", "GET", red.path+"/members?limit=2", ""); page["next"] != bob.membership {
		t.Errorf("first page: got %v", page)
	}

	const gone = "after is no longer in the list: start again without it"
	for _, list := range []string{"/members", "/invitations"} {
		if got := red.must(422, "eve", "GET", red.path+list+"?after=unknown", ""); got["error"] != gone {
			t.Errorf("%s: got %v", list, got)
		}
	}

	changed := red.must(200, "eve", "PATCH", red.member("bob"), `{"role":"auditor"}`)
	if changed["role"] != "auditor" || red.must(200, "bob", "GET", me, "")["user"].(map[string]any)["role"] != "auditor" {
		t.Errorf("got %v", changed)
	}
	if same := red.must(200, "eve", "PATCH", red.member("bob"), `{"role":"auditor"}`); same["role"] != "auditor" {
		t.Errorf("got %v", same)
	}
	if off := red.must(200, "eve", "PATCH", red.member("bob"), `{"suspended":true}`); off["suspended"] != true {
		t.Errorf("got %v", off)
	}
	red.refuses("bob", "GET", me, "", 401, "", "Not signed in")
	red.refuses("", "POST", login, `{"email":"`+bob.email+`","password":"`+password+`"}`, 403, "", "Not a member of the organization")
	red.must(200, "eve", "PATCH", red.member("bob"), `{"suspended":false,"role":"member"}`)
	red.enter("bob", bob.email)
	red.must(204, "eve", "DELETE", red.member("bob"), "")
	red.refuses("bob", "GET", me, "", 401, "", "Not signed in")
	red.refuses("eve", "DELETE", red.member("bob"), "", 404, "", "Not found")
	red.refuses("eve", "PATCH", red.member("bob"), `{"role":"admin"}`, 404, "", "Not found")
	red.must(204, "eve", "DELETE", red.member("eve"), "") // leaves
	red.refuses("eve", "GET", red.path+"/members", "", 401, "", "Not signed in")

	want := []string{
		"invitation_created by ann", "member_added by bob", "invitation_created by ann", "member_added by eve",
		"member_changed by eve", "member_changed by eve", "member_changed by eve", "member_removed by eve", "member_removed by eve",
	}
	if got := red.kinds(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := blue.kinds(); got != nil {
		t.Errorf("blue has %q", got)
	}
}

// Statements name accounts, not addresses, because ledgers are never erased.
func TestNoAddressIsInTheLedger(t *testing.T) {
	w := newWorld(t)
	red := w.team("red")
	bob := red.join("bob", "admin")
	red.must(200, "ann", "PATCH", red.member("bob"), `{"suspended":true}`)
	red.must(204, "ann", "DELETE", red.member("bob"), "")
	for _, statement := range w.Audit(t, red.tenant()) {
		text, err := json.Marshal(statement)
		if err != nil || strings.Contains(string(text), bob.email) || strings.Contains(string(text), email) {
			t.Errorf("got %s, %v", text, err)
		}
	}
}

func TestOwnersAreTouchedByOwnersAlone(t *testing.T) {
	w := newWorld(t)
	red := w.team("red", "admin", "approver")
	for _, body := range []string{`{"role":"member"}`, `{"suspended":true}`} {
		red.refuses("admin", "PATCH", red.member("ann"), body, 403, "", noOwners)
	}
	red.refuses("admin", "DELETE", red.member("ann"), "", 403, "", noOwners)
	for _, name := range []string{"admin", "approver"} {
		red.refuses("admin", "PATCH", red.member(name), `{"role":"owner"}`, 403, "", noOwners)
	}
	red.refuses("admin", "POST", red.path+"/invitations", `{"email":"x@example.com","role":"owner"}`, 403, "", noOwners)
	red.refuses("approver", "DELETE", red.member("admin"), "", 403, "", noRight)
	red.refuses("ann", "PATCH", red.member("admin"), `{"role":"king"}`, 422, "",
		"role must be one of owner, admin, policy_editor, approver, auditor and member")

	for _, body := range []string{`{"role":"admin"}`, `{"suspended":true}`} {
		red.refuses("ann", "PATCH", red.member("ann"), body, 409, "last_owner", noOwner)
	}
	red.refuses("ann", "DELETE", red.member("ann"), "", 409, "last_owner", noOwner)
	red.must(200, "ann", "PATCH", red.member("admin"), `{"role":"owner"}`)
	red.must(200, "ann", "PATCH", red.member("admin"), `{"suspended":true}`)
	red.refuses("ann", "DELETE", red.member("ann"), "", 409, "last_owner", noOwner)
	red.must(200, "ann", "PATCH", red.member("admin"), `{"suspended":false}`)
	red.must(204, "ann", "DELETE", red.member("ann"), "") // an owner leaves
	red.enter("admin", address("admin"))
	red.refuses("admin", "DELETE", red.member("admin"), "", 409, "last_owner", noOwner)
}

// An access can be ended without the operator, while an inactive organization cannot gain members.
func TestMembersOfAnInactiveOrganization(t *testing.T) {
	w := newWorld(t)
	red := w.team("red", "approver")
	_, token := red.invite("late@example.com", "member")
	invitation, _ := red.invite("later@example.com", "member")
	active := false
	if _, err := w.orgs.Change(t.Context(), red.tenant(), sysevent.Operator, org.Patch{Active: &active}); err != nil {
		t.Fatal(err)
	}
	const message = "The organization is inactive: nobody can be invited"
	red.refuses("ann", "POST", red.path+"/invitations", `{"email":"x@example.com","role":"member"}`, 403, "", message)
	red.refuses("ann", "POST", red.path+"/invitations/"+invitation+"/resend", "", 403, "", message)
	red.refuses("", "POST", accept, `{"token":"`+token+`","password":"`+password+`"}`, 403, "", message)
	red.must(204, "ann", "DELETE", red.path+"/invitations/"+invitation, "")
	red.must(200, "ann", "PATCH", red.member("approver"), `{"suspended":true}`)
	red.must(204, "ann", "DELETE", red.member("approver"), "")
}

func TestSwitchOrganization(t *testing.T) {
	w := newWorld(t)
	red, blue, green := w.team("red"), w.team("blue"), w.organization("green")
	before := red.people["ann"].cookie
	const path = "/v1/id/orgs/switch"
	body := `{"organization_id":"` + blue.OrganizationID + `"}`
	answer := w.call("POST", path, body, "Cookie", before)
	var s signedIn
	w.decode(answer, 200, &s)
	if s.Organization.Slug != "blue" || w.cookie(answer) == before {
		t.Errorf("got %+v and %s", s, w.cookie(answer))
	}
	red.refuses("ann", "GET", me, "", 401, "", "Not signed in") // the old token
	red.people["ann"].cookie = w.cookie(answer)
	red.refuses("ann", "GET", red.path+"/members", "", 404, "", "Not found")
	red.must(200, "ann", "GET", blue.path+"/members", "")

	bob := blue.join("bob", "member")
	stranger := `{"organization_id":"` + green.OrganizationID + `"}`
	blue.refuses("bob", "POST", path, stranger, 403, "", "Not a member of the organization")
	blue.refuses("bob", "POST", path, `{"organization_id":"00000000-0000-4000-8000-000000000000"}`, 403, "", "Not a member of the organization")
	blue.refuses("bob", "POST", path, `{}`, 422, "", "organization_id is required")
	blue.refuses("", "POST", path, body, 401, "", "Not signed in")
	if g := w.call("POST", path, body, "Cookie", bob.cookie, "Sec-Fetch-Site", "cross-site"); g.Code != 403 {
		t.Errorf("another site: got %d %s", g.Code, g.Body)
	}
	blue.must(200, "bob", "GET", me, "") // the session still works
}

// memberPermissions maps each route below an organization to its permission.
func memberPermissions() map[string]account.Permission {
	return map[string]account.Permission{
		"GET /members":                          account.Read,
		"PATCH /members/{membership}":           account.ChangeMembers,
		"DELETE /members/{membership}":          account.Leave,
		"GET /invitations":                      account.ChangeMembers,
		"POST /invitations":                     account.Invite,
		"POST /invitations/{invitation}/resend": account.Invite,
		"DELETE /invitations/{invitation}":      account.ChangeMembers,
	}
}

// Every route with a permission of a role is called with every role and every other credential, and the answers are
// compared with the table of permissions. All other routes are called without a role.
func TestEveryRouteWithEveryRole(t *testing.T) {
	w := newWorld(t)
	red := w.team("red", "owner", "admin", "policy_editor", "approver", "auditor", "member")
	blue := w.team("blue")
	wanted := memberPermissions()
	for _, route := range w.routed {
		below, ofOrganization := strings.CutPrefix(route.Pattern, "/v1/id/orgs/{organization}")
		if !ofOrganization {
			w.checkOtherRoute(t, red, route.Method, route.Pattern, string(route.Permission.Credential), route.Body.Max > 0)
			continue
		}
		name := route.Method + " " + below
		permission, known := wanted[name]
		if !known || route.Permission.Right != string(permission) || route.Permission.Credential != "session" {
			t.Errorf("%s: got %+v, want %q", name, route.Permission, permission)
		}
		delete(wanted, name)
		path := red.path + strings.NewReplacer("{", "", "}", "").Replace(below)
		body := map[bool]string{true: "{}"}[route.Body.Max > 0]
		for _, role := range account.Roles() {
			if !role.May(permission) {
				red.refuses(string(role), route.Method, path, body, 403, "", noRight)
			} else if code, got := red.as(string(role), route.Method, path, body); code != 200 && code != 404 && code != 422 {
				t.Errorf("%s as %s: got %d %v", name, role, code, got)
			}
		}
		red.refuses("", route.Method, path, body, 401, "", "Not signed in")
		for _, header := range [][]string{
			{"X-Platform-Secret", platformSecret}, {"Authorization", "Bearer " + red.IngestKey.Secret},
		} {
			answers(t, name+" with "+header[0], w.call(route.Method, path, body, header...), 401, refusal("Not signed in"))
		}
		blue.refuses("ann", route.Method, path, body, 404, "", "Not found")
		if g := w.call(route.Method, path, body, "Cookie", red.people["owner"].cookie, "Sec-Fetch-Site", "cross-site"); route.Method != "GET" && g.Code != 403 {
			t.Errorf("%s of another site: got %d %s", name, g.Code, g.Body)
		}
	}
	for name := range wanted {
		t.Errorf("%s is no route", name)
	}
}

// checkOtherRoute calls a route that requires no permission of a role: the platform's routes with the strongest
// session, routes for sessions without one, and the others, which must not fail for lack of a session.
func (w *world) checkOtherRoute(t *testing.T, red *team, method, pattern, credential string, hasBody bool) {
	t.Helper()
	path := strings.NewReplacer("{", "", "}", "").Replace(pattern)
	body := map[bool]string{true: "{}"}[hasBody]
	name, want := "", "Not signed in"
	switch credential {
	case "platformSecret":
		name, want = "owner", "Invalid platform secret"
	case "":
		for _, cookie := range []string{"", red.people["owner"].cookie} {
			header := []string{"Authorization", "Bearer " + red.IngestKey.Secret}
			if path == logout || cookie != "" && path == "/v1/id/orgs/switch" {
				continue // it ends the session
			}
			if g := w.call(method, path, body, append(header, "Cookie", cookie)...); g.Code >= 500 || g.Code == http.StatusMethodNotAllowed {
				t.Errorf("%s %s: got %d %s", method, path, g.Code, g.Body)
			}
		}
		return
	}
	header := []string{"Authorization", "Bearer " + red.IngestKey.Secret}
	if p := red.people[name]; p != nil {
		header = append(header, "Cookie", p.cookie)
	}
	g := w.callFrom("198.51.100."+string('1'+byte(len(pattern)%9)), method, path, body, header...)
	if g.Code != 401 && g.Code != 429 || g.Code == 401 && g.Body.String() != refusal(want) {
		t.Errorf("%s %s: got %d %s, want %q", method, path, g.Code, g.Body, want)
	}
}

// Bodies and lists have the same limits as everywhere.
func TestBodiesAndListsOfMembers(t *testing.T) {
	w := newWorld(t, func(o *identity.Options) { o.Signup = true })
	red := w.team("red")
	bodies := map[string]string{
		"PATCH " + red.member("ann"): `{"role":"owner"}`, "POST " + red.path + "/invitations": `{"email":"x@example.com","role":"member"}`,
		"POST " + accept: `{"token":"x"}`, "POST /v1/id/orgs": `{"name":"n","slug":"sss"}`, "POST /v1/id/orgs/switch": `{"organization_id":"` + red.OrganizationID + `"}`,
	}
	for route, body := range bodies {
		method, path, _ := strings.Cut(route, " ")
		ask := func(body io.Reader, media string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(method, path, body)
			r.Header.Set("Content-Type", media)
			r.Header.Set("Cookie", red.people["ann"].cookie)
			answer := httptest.NewRecorder()
			w.handler.ServeHTTP(answer, r)
			return answer
		}
		answers(t, route+" text", ask(strings.NewReader(body), "text/plain"), 415, refusal("Content-Type must be application/json"))
		answers(t, route+" large", ask(strings.NewReader(`{"a":"`+strings.Repeat("x", 64<<10)+`"}`), "application/json"), 413, refusal("The body is too large"))
		answers(t, route+" slow", ask(iotest.ErrReader(os.ErrDeadlineExceeded), "application/json"), 408, refusal("The body took too long to arrive"))
		answers(t, route+" unknown member", ask(strings.NewReader(`{"colour":"red"}`), "application/json"), 422, refusal(`Member \"colour\" is not known`))
	}
	for _, list := range []string{"/members", "/invitations"} {
		red.refuses("ann", "GET", red.path+list+"?limit=0", "", 422, "", "limit must be from 1 to 1000")
	}
}

// Changes are limited by the rate of the plan. Ending an access is never limited.
func TestPaceOfMembers(t *testing.T) {
	w := newWorld(t)
	red, blue := w.team("red", "approver", "auditor"), w.team("blue")
	invitation, _ := red.invite("bob@example.com", "member")
	other, _ := red.invite("eve@example.com", "member")
	w.quota.Plan = onePerMinute{}.Limits
	const message = "Too many changes: at most 1 in a minute"
	red.must(200, "ann", "PATCH", red.member("approver"), `{"role":"admin"}`)
	red.refuses("ann", "PATCH", red.member("approver"), `{"role":"member"}`, 429, "rate_limited", message)
	red.refuses("ann", "POST", red.path+"/invitations", `{"email":"x@example.com","role":"member"}`, 429, "rate_limited", message)
	red.refuses("ann", "POST", red.path+"/invitations/"+invitation+"/resend", "", 429, "rate_limited", message)
	red.must(200, "ann", "PATCH", red.member("approver"), `{"suspended":true}`)
	red.must(204, "ann", "DELETE", red.member("auditor"), "")
	red.must(204, "ann", "DELETE", red.path+"/invitations/"+other, "")
	blue.invite("bob@example.com", "member")
	w.Pass(time.Minute)
	red.must(200, "ann", "POST", red.path+"/invitations/"+invitation+"/resend", "")
}

// onePerMinute is a plan that allows one change per minute.
type onePerMinute struct{}

func (onePerMinute) Limits(context.Context, id.Tenant) (quota.Limits, error) {
	return quota.Limits{StatementsPerMinute: 1}, nil
}

// What only an owner may do requires a factor proved in the last 15 minutes; nothing else does.
func TestChangesOfOwnersAskForAFactor(t *testing.T) {
	w := newWorld(t)
	red := w.team("red", "owner", "approver", "auditor")
	w.Pass(15 * time.Minute)
	const message = "Confirm your identity again: step up"
	red.refuses("ann", "PATCH", red.member("owner"), `{"suspended":true}`, 401, "step_up", message)
	red.refuses("ann", "PATCH", red.member("approver"), `{"role":"owner"}`, 401, "step_up", message)
	red.refuses("ann", "DELETE", red.member("owner"), "", 401, "step_up", message)
	red.refuses("ann", "DELETE", red.member("ann"), "", 401, "step_up", message)
	red.refuses("ann", "POST", red.path+"/invitations", `{"email":"x@example.com","role":"owner"}`, 401, "step_up", message)
	red.must(200, "ann", "PATCH", red.member("approver"), `{"role":"admin"}`)
	red.must(204, "ann", "DELETE", red.member("auditor"), "")
	red.invite("x@example.com", "admin")

	w.organization("blue") // ann is a member of both
	answer := w.call("POST", "/v1/id/orgs/switch", `{"organization_id":"`+red.OrganizationID+`"}`, "Cookie", red.people["ann"].cookie)
	red.people["ann"].cookie = w.cookie(answer)
	red.refuses("ann", "DELETE", red.member("owner"), "", 401, "step_up", message) // a switch proves nothing
	answer = w.call("POST", "/v1/id/auth/step-up", `{"password":"`+password+`"}`, "Cookie", red.people["ann"].cookie)
	red.people["ann"].cookie = w.cookie(answer)
	red.must(204, "ann", "DELETE", red.member("owner"), "")
}
