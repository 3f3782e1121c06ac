package console_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/storage"
)

// roles are changes of members' roles; "" means that the account is no longer a member.
type roles map[account.ID]account.Role

// TakenOverAt implements apitoken.Members.
func (r roles) TakenOverAt(context.Context, account.ID) (id.Instant, error) { return 0, nil }

// ByID implements approval.Members and slacklink.Members.
func (r roles) ByID(ctx context.Context, who account.ID) (account.Account, error) {
	return members{}.ByID(ctx, who)
}

func (r roles) Membership(ctx context.Context, t id.Tenant, who account.ID) (account.Membership, error) {
	m, err := members{}.Membership(ctx, t, who)
	if role, changed := r[who]; changed {
		m.Role = role
	}
	if m.Role == "" {
		return m, fault.New(fault.NotFound, "Not found")
	}
	return m, err
}

// bearer sets a console token as the only credential.
func bearer(token string) func(*http.Request) {
	return func(r *http.Request) {
		as("")(r)
		r.Header.Set("Authorization", "Bearer "+token)
	}
}

// token creates a token of a member.
func (w *world) token(session, role string) (name, secret string) {
	w.t.Helper()
	made := w.call(201, "POST", "/tokens", fmt.Sprintf(`{"name":"ci","role":%q,"expires_at":%q}`, role, w.Clock().Add(time.Hour).Format(time.RFC3339)), as(session))
	return made["token_id"].(string), made["token"].(string)
}

// checkRouteWithTokens calls a route with a token of each role.
func (w *world) checkRouteWithTokens(t *testing.T, name string, p account.Permission, ask func(...func(*http.Request)) *http.Request) {
	t.Helper()
	for _, role := range account.Roles() {
		if role == account.Owner {
			continue
		}
		token, secret := w.token("red-owner", string(role))
		switch r := ask(bearer(secret), header("Sec-Fetch-Site", "cross-site")); {
		case !p.ForTokens():
			w.refuses(name+" with a token", r, 403, "Tokens can't do this: sign in")
		case !role.May(p):
			w.refuses(name+" with a token as "+string(role), r, 403, "The token's role does not allow this")
		default:
			if g := w.do(r); g.status == 401 || g.status == 403 || g.status == 405 || g.status >= 500 {
				t.Errorf("%s with a token as %s: got %d %s", name, role, g.status, g.text)
			}
		}
		w.call(204, "DELETE", "/tokens/"+token, "")
	}
}

func TestTokens(t *testing.T) {
	w := newWorld(t)
	made := w.call(201, "POST", "/tokens", `{"name":"ci","role":"policy_editor","expires_at":"2026-11-30T00:00:00Z"}`)
	secret := made["token"].(string)
	view := fmt.Sprintf(`{"token_id":%q,"name":"ci","role":"policy_editor","created_at":%q,"expires_at":"2026-11-30T00:00:00.000Z"}`, made["token_id"], made["created_at"])
	equal(t, "list", w.call(200, "GET", "/tokens", ""), `{"tokens":[`+view+`],"next":null}`)
	equal(t, "another member's list", w.call(200, "GET", "/tokens", "", as("red-admin")), `{"tokens":[],"next":null}`)
	equal(t, "the other organization's list", w.call(200, "GET", "/tokens", "", as("blue-owner")), `{"tokens":[],"next":null}`)
	if got, want := fmt.Sprint(w.call(200, "GET", "/organization", "", bearer(secret))["permissions"]), "[read try policies edit policies save views]"; got != want {
		t.Errorf("a policy editor's token may: got %s, want %s", got, want)
	}
	w.call(201, "POST", "/policies", `{"policy_id":"p","name":"n"}`, bearer(secret))
	w.call(200, "POST", "/policies/p/activate", "", bearer(secret))
	if found := w.call(200, "GET", "/policies", "", as("blue-owner"))["policies"].([]any); len(found) != 0 {
		t.Errorf("the other organization has %v", found)
	}
	want := []string{"ledger_token_created by acc_red-owner", "ledger_policy_activated by acc_red-owner/" + made["token_id"].(string)}
	if got := w.kinds(red); !slices.Equal(got, want) {
		t.Errorf("ledger: got %q, want %q", got, want)
	}
	w.refuses("another member's", w.request("DELETE", "/tokens/"+made["token_id"].(string), "", as("red-admin")), 404, "Not found")
	w.refuses("the other organization's", w.request("DELETE", "/tokens/"+made["token_id"].(string), "", as("blue-owner")), 404, "Not found")
	w.call(204, "DELETE", "/tokens/"+made["token_id"].(string), "")
	w.refuses("deleted", w.request("GET", "/policies", "", bearer(secret)), 401, "Not signed in")
	w.refuses("deleted again", w.request("DELETE", "/tokens/"+made["token_id"].(string), ""), 404, "Not found")
	for tenant, kinds := range map[id.Tenant][]storage.Kind{red: {"console_token"}, id.Service: {"console_token_claim"}} {
		for _, kind := range kinds {
			found, err := w.Store.Scan(t.Context(), tenant, kind, "", "", 10)
			if err != nil || len(found) > 0 && strings.Contains(string(found[0].Value), "tok_") {
				t.Errorf("%s: got %v, %v", kind, found, err)
			}
		}
	}
}

func TestWrongTokens(t *testing.T) {
	w := newWorld(t)
	with := func(change ...string) string {
		m := map[string]string{"name": `"ci"`, "role": `"member"`, "expires_at": `"2026-11-30T00:00:00Z"`}
		m[change[0]] = change[1]
		return fmt.Sprintf(`{"name":%s,"role":%s,"expires_at":%s}`, m["name"], m["role"], m["expires_at"])
	}
	const roleRule = "role must be admin, policy_editor, approver, auditor or member"
	for what, tc := range map[string]struct{ body, message string }{
		"no name":       {with("name", `""`), "name must have 1 to 100 characters and no control characters"},
		"long name":     {with("name", `"`+strings.Repeat("n", 101)+`"`), "name must have 1 to 100 characters and no control characters"},
		"owner":         {with("role", `"owner"`), roleRule},
		"no role":       {with("role", `""`), roleRule},
		"unknown role":  {with("role", `"king"`), roleRule},
		"no end":        {`{"name":"ci","role":"member"}`, "expires_at must be in the future"},
		"past":          {with("expires_at", `"2020-01-01T00:00:00Z"`), "expires_at must be in the future"},
		"too late":      {with("expires_at", `"2027-11-23T00:00:00Z"`), "expires_at must be at most a year from now"},
		"far too late":  {with("expires_at", `"9999-11-23T00:00:00Z"`), "expires_at must be at most a year from now"},
		"another thing": {`{"name":"ci","role":"member","expires_at":"2026-11-30T00:00:00Z","scope":"x"}`, `Member "scope" is not known`},
	} {
		w.refuses(what, w.request("POST", "/tokens", tc.body), 422, tc.message)
	}
	w.refuses("a bad after", w.request("GET", "/tokens?after=x", ""), 422, "after is not a token of yours")
}

// The role of a token may not exceed the creator's role, both at creation and at each use.
func TestTokensAndTheirMakers(t *testing.T) {
	w := newWorld(t)
	w.own(red, map[org.Limit]uint64{org.StatementsPerMinute: 1000})
	for _, maker := range account.Roles() {
		for _, role := range account.Roles()[1:] {
			body := fmt.Sprintf(`{"name":"ci","role":%q,"expires_at":"2026-11-30T00:00:00Z"}`, role)
			r := w.request("POST", "/tokens", body, as("red-"+string(maker)))
			covered := maker == role || maker == account.Owner || maker == account.Admin || role == account.Member
			if !covered {
				w.refuses(string(maker)+" makes "+string(role), r, 403, "The token's role exceeds yours")
				continue
			}
			if g := w.do(r); g.status != 201 {
				t.Errorf("%s makes %s: got %d %s", maker, role, g.status, g.text)
			}
		}
	}
	_, admin := w.token("red-admin", "admin")
	_, editor := w.token("red-admin", "policy_editor")
	ask := func(token string) *http.Request { return w.request("GET", "/policies", "", bearer(token)) }
	expect := func(what string, token string, status int, message string) {
		t.Helper()
		if status == 200 {
			if g := w.do(ask(token)); g.status != 200 {
				t.Errorf("%s: got %d %s", what, g.status, g.text)
			}
			return
		}
		w.refuses(what, ask(token), status, message)
	}
	expect("at first", admin, 200, "")
	w.roles["acc_red-admin"] = account.PolicyEditor
	const beyond = "The token's role exceeds that of its creator"
	expect("after a demotion", admin, 403, beyond)
	expect("after a demotion, still covered", editor, 200, "")
	w.roles["acc_red-admin"] = account.Member
	expect("after a demotion to member", editor, 403, beyond)
	w.roles["acc_red-admin"] = "" // removed or suspended
	expect("after removal", editor, 401, "Not signed in")
	delete(w.roles, "acc_red-admin")
	expect("again an admin", admin, 200, "")
	w.Pass(2 * time.Hour)
	expect("over", admin, 401, "Not signed in")
}

func TestNumberOfTokens(t *testing.T) {
	w := newWorld(t)
	w.own(red, map[org.Limit]uint64{org.StatementsPerMinute: 1000})
	names := make([]string, 20)
	for i := range names {
		names[i], _ = w.token("red-admin", "member")
	}
	body := fmt.Sprintf(`{"name":"ci","role":"member","expires_at":%q}`, w.Clock().Add(time.Minute).Format(time.RFC3339))
	w.bounded("one more", w.request("POST", "/tokens", body, as("red-admin")), 409, "token_limit", "You have 20 tokens, the most that a member may have: delete one first")
	w.token("red-owner", "member")
	page := w.call(200, "GET", "/tokens?limit=15", "", as("red-admin"))
	rest := w.call(200, "GET", "/tokens?limit=15&after="+page["next"].(string), "", as("red-admin"))
	if len(page["tokens"].([]any)) != 15 || len(rest["tokens"].([]any)) != 5 || rest["next"] != nil {
		t.Errorf("pages: got %v and %v", page, rest)
	}
	w.call(204, "DELETE", "/tokens/"+names[0], "", as("red-admin"))
	w.token("red-admin", "member")
	w.Pass(2 * time.Hour) // all have expired and free their slots
	w.token("red-admin", "member")
	if rest := w.call(200, "GET", "/tokens", "", as("red-admin"))["tokens"].([]any); len(rest) != 1 {
		t.Errorf("got %d, want 1", len(rest))
	}
	claims, err := w.Store.Scan(t.Context(), id.Service, "console_token_claim", "", "", 100)
	if err != nil || len(claims) != 2 { // the owner's token has expired and still counts
		t.Errorf("got %d claims, %v; want 2", len(claims), err)
	}
	w.Pass(time.Hour)
	w.own(red, map[org.Limit]uint64{org.StatementsPerMinute: 1})
	w.token("red-owner", "member")
	body = fmt.Sprintf(`{"name":"ci","role":"member","expires_at":%q}`, w.Clock().Add(time.Minute).Format(time.RFC3339))
	w.bounded("too fast", w.request("POST", "/tokens", body), 429, "rate_limited", "Too many changes: at most 1 in a minute")
}

// For the rules about who decides, what a user does through a token counts as done by the user.
func TestTokensAndFourEyes(t *testing.T) {
	w := newWorld(t)
	w.call(200, "PATCH", "/organization", `{"two_person_policy":true}`)
	_, secret := w.token("red-admin", "admin")
	w.refuses("the owner's setting", w.request("PATCH", "/organization", `{"two_person_policy":false}`, bearer(secret)), 403, "Your role does not allow this")
	w.call(201, "POST", "/policies", `{"policy_id":"p","name":"n"}`, as("red-admin"))
	w.bounded("the maker's own by a token", w.request("POST", "/policies/p/activate", "", bearer(secret)), 409, "second_person", "You changed this version last: another person has to activate it")
	w.call(201, "POST", "/policies", `{"policy_id":"q","name":"n"}`, bearer(secret))
	w.bounded("the token's own by the maker", w.request("POST", "/policies/q/activate", "", as("red-admin")), 409, "second_person", "You changed this version last: another person has to activate it")
	made := w.call(201, "POST", "/ingest-keys", `{"name":"k"}`, bearer(secret))["key"].(map[string]any)
	if made["created_by"] != "acc_red-admin" {
		t.Errorf("got %v", made)
	}
}

// A program sees the approvals, and that it cannot vote.
func TestTokensAndApprovals(t *testing.T) {
	w := newWorld(t)
	question := w.ask(red)
	path := "/approvals/" + string(question.ID)
	_, secret := w.token("red-approver", "approver")
	if got := w.call(200, "GET", path, "", as("red-approver")); got["may_vote"] != true {
		t.Errorf("the person: got %v", got)
	}
	if got := w.call(200, "GET", path, "", bearer(secret)); got["may_vote"] != false || got["why_not"] != "token" || got["payload"] == nil {
		t.Errorf("the program: got %v", got)
	}
	ballot := fmt.Sprintf(`{"vote":"approve","action_digest":%q}`, question.ActionDigest)
	w.refuses("a vote", w.request("POST", path+"/votes", ballot, bearer(secret)), 403, "Tokens can't do this: sign in")
	_, blue := w.token("blue-approver", "approver")
	w.refuses("the other organization's", w.request("GET", path, "", bearer(blue)), 404, "Not found")
}
