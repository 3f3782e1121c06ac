package identity_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
)

// operatorCalls maps every call of the operator to what it can change about how a member signs in, or "" for nothing. A
// new call must be added here.
var operatorCalls = map[string]string{
	"GET /v1/id/platform/organizations":                                 "",
	"POST /v1/id/platform/organizations":                                "account_taken_over",
	"GET /v1/id/platform/organizations/{organization}":                  "",
	"PATCH /v1/id/platform/organizations/{organization}":                "", // sign_in: null is a ledger_settings_changed
	"POST /v1/id/platform/organizations/{organization}/log-keys":        "",
	"POST /v1/id/platform/organizations/{organization}/log-keys/retire": "",
	"POST /v1/id/platform/organizations/{organization}/witnesses/ask":   "",
	"POST /v1/id/platform/organizations/{organization}/reindex":         "",
	"POST /v1/id/platform/organizations/{organization}/clock":           "",
	"GET /v1/id/platform/status":                                        "",
	"GET /v1/id/platform/organizations/{organization}/status":           "",
	"GET /v1/id/platform/clock":                                         "",
	"POST /v1/id/platform/clock":                                        "",
	"POST /v1/id/platform/snapshots":                                    "",
	"DELETE /v1/id/platform/snapshots/{snapshot}":                       "",
	"GET /v1/id/platform/accounts":                                      "",
	"DELETE /v1/id/platform/accounts/{account}/second-factors":          "second_factors_removed",
	"POST /v1/id/platform/accounts/password":                            "password_set",
}

// Each call by which the operator changes how a member signs in is an event in each of the member's organizations.
func TestOperatorChangesOfSignInAreStated(t *testing.T) {
	w := newWorld(t)
	var listed []string
	for _, route := range w.routed {
		if route.Permission.Credential == edge.PlatformSecret {
			listed = append(listed, route.Method+" "+route.Pattern)
			if _, classified := operatorCalls[route.Method+" "+route.Pattern]; !classified {
				t.Errorf("%s %s: does it change how a member signs in?", route.Method, route.Pattern)
			}
		}
	}
	for call := range operatorCalls {
		if !slices.Contains(listed, call) {
			t.Errorf("%s: there is no such call", call)
		}
	}
	w.organization("red")
	w.organization("blue")
	w.Pass(time.Minute)
	who, err := w.accounts.Find(t.Context(), email)
	if err != nil {
		t.Fatal(err)
	}
	answers(t, "factors", w.platform("DELETE", "/v1/id/platform/accounts/"+string(who.ID)+"/second-factors", ""), 204, "")
	answers(t, "password", w.platform("POST", "/v1/id/platform/accounts/password", `{"email":"`+email+`","password":"chosen by the operator"}`), 204, "")
	w.changeStored(email, func(members map[string]any) { members["proof"] = map[string]any{"by": "none", "home": 0} })
	if answer := w.platform("POST", organizations, `{"name":"X","slug":"green","admin_email":"`+email+`","admin_password":"`+password+`"}`); answer.Code != 201 {
		t.Fatalf("take over: %d %s", answer.Code, answer.Body)
	}
	w.wantSignIns("red", "second_factors_removed by operator", "password_set by operator", "account_taken_over by operator")
	w.wantSignIns("blue", "second_factors_removed by operator", "password_set by operator", "account_taken_over by operator")
	w.wantSignIns("green")
}

// wantSignIns states what is due and compares it with the events about sign-ins in the log of an organization.
func (w *world) wantSignIns(slug string, want ...string) {
	w.t.Helper()
	if err := w.members.Sweep(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	tenant, err := w.orgs.BySlug(w.t.Context(), id.Slug(slug))
	if err != nil {
		w.t.Fatal(err)
	}
	var got []string
	for _, s := range w.Audit(w.t, tenant) {
		if s.Kind != "ledger_member_sign_in_changed" {
			continue
		}
		_, change, _ := strings.Cut(s.Payload, `"change":"`)
		_, by, _ := strings.Cut(s.Payload, `"by":"`)
		change, _, _ = strings.Cut(change, `"`)
		by, _, _ = strings.Cut(by, `"`)
		if (by == "operator") != (s.Principal == "operator") {
			w.t.Errorf("%s: principal %s of %s", slug, s.Principal, s.Payload)
		}
		got = append(got, change+" by "+by)
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("%s: got %q, want %q", slug, got, want)
	}
}

// A mailed link sets a password without a factor of the person, so that is an event too. A change that the person
// proves with the current password is not.
func TestResetIsStated(t *testing.T) {
	w := newWorld(t)
	w.organization("red")
	w.Pass(time.Minute)
	answers(t, "reset", w.reset(w.resetToken(email), "another good password"), 204, "")
	w.wantSignIns("red", "password_set by mail")
	ann := w.browser(1)
	w.decode(ann.ask("POST", login, `{"email":"`+email+`","password":"another good password"}`), 200, &signedIn{})
	w.decode(ann.ask("POST", "/v1/id/account/password", `{"current":"another good password","new":"a third good password"}`), 200, &signedIn{})
	w.wantSignIns("red", "password_set by mail")
}
