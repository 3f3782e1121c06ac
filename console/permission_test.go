package console_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

// permissions returns the permission of each route, below /v1/console.
func permissions() map[string]account.Permission {
	of := map[string]account.Permission{}
	for permission, routes := range map[account.Permission]string{
		account.Read: `GET /ingest-keys, GET /ingest-keys/{key}, GET /agents, GET /agents/{agent}, GET /agents/{agent}/keys,
			GET /policies, GET /policies/{policy}, GET /policies/{policy}/versions, GET /approvals, GET /approvals/{approval}, GET /voter-keys, GET /deputies, GET /runs, GET /runs/{run},
			GET /events, GET /events/{event}, GET /acts, GET /acts/{event}, GET /traces, GET /traces/{trace}, GET /stats,
			GET /webhooks, GET /webhooks/{webhook}, GET /webhooks/{webhook}/deliveries, GET /columns, GET /tool-keys, GET /views, GET /witnesses, GET /stream-export, GET /organization, GET /organization/plan-usage`,
		account.ReadPayloads: `GET /evidence.zip, POST /coverage`,
		account.TryPolicies:  `POST /policies/check, POST /policies/{policy}/simulate`,
		account.EditPolicies: `POST /policies, PATCH /policies/{policy}, DELETE /policies/{policy},
			POST /policies/{policy}/activate, POST /policies/{policy}/deactivate`,
		account.SaveViews: `PUT /views, DELETE /views`,
		account.Vote: `POST /approvals/{approval}/revoke, POST /voter-keys, POST /voter-keys/options, DELETE /voter-keys/{credential},
			PUT /deputies/{membership}`,
		account.Leave:      `DELETE /deputies/{membership}`,
		account.SignedVote: `POST /approvals/{approval}/votes, POST /approvals/{approval}/votes/options`,
		account.Manage: `POST /ingest-keys, PATCH /ingest-keys/{key}, POST /agents, PATCH /agents/{agent}, POST /agents/{agent}/keys,
			POST /agents/{agent}/keys/{key}/retire, POST /webhooks, PATCH /webhooks/{webhook}, DELETE /webhooks/{webhook},
			POST /webhooks/callback-key/rotate, POST /webhooks/{webhook}/rotate, POST /webhooks/{webhook}/test, POST /webhooks/{webhook}/replay, PUT /witnesses, DELETE /witnesses,
			POST /witnesses/ask, PUT /columns, PUT /tool-keys, PUT /stream-export, DELETE /stream-export, POST /stream-export/test, PATCH /organization`,
		account.ReadAudit:  `GET /audit, GET /erasures, GET /erasures/{erasure}`,
		account.Own:        `POST /events/{event}/erase, POST /erasures`,
		account.Share:      `GET /shares, POST /shares, DELETE /shares/{share}`,
		account.UseTokens:  `GET /tokens, POST /tokens, DELETE /tokens/{token}`,
		account.RevokeKeys: `DELETE /ingest-keys/{key}, POST /agents/{agent}/keys/{key}/revoke`,
	} {
		for route := range strings.SplitSeq(routes, ",") {
			of[strings.Join(strings.Fields(route), " ")] = permission
		}
	}
	return of
}

// Every route is called with every role and with every other credential, and the answers are compared with the table of
// permissions. A route that is missing from the table fails the test.
func TestEveryRouteWithEveryRole(t *testing.T) {
	w := newWorld(t)
	w.own(red, map[org.Limit]uint64{org.StatementsPerMinute: 10_000})
	wanted := permissions()
	for _, route := range w.routed {
		name := route.Method + " " + strings.TrimPrefix(route.Pattern, "/v1/console")
		permission, known := wanted[name]
		want := edge.Permission{Credential: edge.Session, Right: string(permission)}
		if !slices.Contains([]account.Permission{account.Vote, account.SignedVote, account.Leave, account.UseTokens, account.Own, account.Share}, permission) {
			want.Or = edge.ConsoleToken
		}
		if !known || route.Permission != want {
			t.Errorf("%s: got %+v, want %q", name, route.Permission, permission)
		}
		delete(wanted, name)
		w.checkRoute(t, route, permission)
	}
	for name := range wanted {
		t.Errorf("%s is not a route", name)
	}
}

func (w *world) checkRoute(t *testing.T, route edge.Listed, permission account.Permission) {
	t.Helper()
	path := strings.NewReplacer("/v1/console", "", "{", "", "}", "").Replace(route.Pattern)
	body := ""
	if route.Body.Max > 0 {
		body = "{}"
	}
	ask := func(change ...func(*http.Request)) *http.Request {
		return w.request(route.Method, path, body, change...)
	}
	name := route.Method + " " + path
	for _, role := range account.Roles() {
		r := ask(as("red-" + string(role)))
		if !role.May(permission) {
			w.refuses(name+" as "+string(role), r, 403, "Your role does not allow this")
			continue
		}
		if g := w.do(r); g.status == 401 || g.status == 403 || g.status == 405 || g.status >= 500 {
			t.Errorf("%s as %s: got %d %s", name, role, g.status, g.text)
		}
	}
	w.checkRouteWithTokens(t, name, permission, ask)
	for who, r := range map[string]*http.Request{
		"without a session":                ask(as("")),
		"with the platform secret":         ask(as(""), header("X-Platform-Secret", "platform-secret-for-tests")),
		"with an ingest key":               ask(as(""), header("Authorization", "Bearer apl_test_x_y")),
		"with an unknown token":            ask(as(""), header("Authorization", "Bearer alt_"+strings.Repeat("A", 43))),
		"with a short token and a session": ask(header("Authorization", "Bearer alt_A")),
		"with a session as a bearer token": ask(as(""), header("Authorization", "Bearer red-owner")),
	} {
		w.refuses(name+" "+who, r, 401, "Not signed in")
	}
}

// A session of another organization can neither read nor change this one.
func TestEveryRouteWithASessionOfAnotherOrganization(t *testing.T) {
	w := newWorld(t)
	a := w.ask(red)
	names := strings.NewReplacer("/v1/console", "", "{key}", a.IngestKeyID, "{agent}", string(w.first[red].Agent),
		"{policy}", "p", "{approval}", string(a.ID), "{run}", "r", "{webhook}", "w", "{token}", "k",
		"{erasure}", "ers_x", "{event}", string(w.secretEvent()), "{trace}", "trc-secret")
	before := w.kinds(red)
	for _, route := range w.routed {
		body := ""
		if route.Body.Max > 0 {
			body = map[bool]string{true: `{"last":1}`, false: `{}`}[strings.HasSuffix(route.Pattern, "/simulate")]
		}
		g := w.do(w.request(route.Method, names.Replace(route.Pattern), body, as("blue-owner")))
		name := route.Method + " " + route.Pattern
		if strings.Contains(route.Pattern, "{") && g.status != 404 && g.status != 422 {
			t.Errorf("%s: got %d %s", name, g.status, g.text)
		}
		for _, secret := range []string{string(a.ID), a.IngestKeyID, string(w.first[red].Agent), a.ActionDigest.String()} {
			if strings.Contains(g.text, secret) {
				t.Errorf("%s: got %s, which is red's", name, g.text)
			}
		}
	}
	if after := w.kinds(red); !slices.Equal(before, after) {
		t.Errorf("red's ledger has %v, want %v", after, before)
	}
}

// All roles see approvals, but only roles that may read payloads see their payloads.
func TestPayloadsOfApprovalsByRole(t *testing.T) {
	w := newWorld(t)
	path := "/approvals/" + string(w.ask(red).ID)
	for role, want := range map[string]bool{
		"owner": true, "admin": true, "policy_editor": false, "approver": true, "auditor": true, "member": false,
	} {
		alone := w.call(200, "GET", path, "", as("red-"+role))
		listed := w.call(200, "GET", "/approvals", "", as("red-"+role))["approvals"].([]any)[0].(map[string]any)
		for what, view := range map[string]map[string]any{"alone": alone, "listed": listed} {
			payload, has := view["payload"]
			if has != want || has && payload.(map[string]any)["amount"] != 7.0 {
				t.Errorf("%s, %s: got %v, want a payload: %v", role, what, payload, want)
			}
			if view["action_digest"] == nil || view["tool_name"] != "acme.refund" {
				t.Errorf("%s, %s: got %v", role, what, view)
			}
		}
	}
}

// Only routes whose permission requires a factor refuse a session without a recently proved one. Roles without the
// permission get the same answer as always.
func TestEveryRouteWithoutALateFactor(t *testing.T) {
	w := newWorld(t)
	wanted := permissions()
	for _, route := range w.routed {
		path := strings.NewReplacer("/v1/console", "", "{", "", "}", "").Replace(route.Pattern)
		permission := wanted[route.Method+" "+strings.TrimPrefix(route.Pattern, "/v1/console")]
		body := ""
		if route.Body.Max > 0 {
			body = "{}"
		}
		g := w.do(w.request(route.Method, path, body, as("red-owner-late")))
		if needs := permission == account.Vote || strings.HasSuffix(path, "/votes") || permission == account.Own; (g.status == 401) != needs {
			t.Errorf("%s %s: got %d %s", route.Method, path, g.status, g.text)
		}
		if permission == account.Vote {
			if want := `{"error":"Confirm your identity again: step up","code":"step_up"}`; g.text != want {
				t.Errorf("got %s, want %s", g.text, want)
			}
			w.refuses(path, w.request(route.Method, path, body, as("red-member-late")), 403, "Your role does not allow this")
		}
	}
}
