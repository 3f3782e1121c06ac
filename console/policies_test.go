package console_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/policy"
)

const paymentRule = `{"rule_id":"r1","tool":"acme.pay.*","decision":"deny"}`

// enforced is paymentRule with all members.
const enforced = `{"agents":[],"decision":"deny","limit":null,"mode":"enforce","obligations":[],"on_error":"match",` +
	`"priority":0,"reason":"","requires":[],"rule_id":"r1","tool":"acme.pay.*","when":null}`

// digest returns the policy_digest of the payments policy with these members.
func digest(t *testing.T, version, name, decision string) string {
	t.Helper()
	p, err := policy.Parse([]byte(`{"policy_id":"payments","version":` + version + `,"name":"` + name + `","default":"` + decision + `","rules":[` + paymentRule + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	return p.Digest().String()
}

func TestPolicies(t *testing.T) {
	w := newWorld(t)
	view := func(version, name, decision, state, activated, archived string) string {
		return fmt.Sprintf(`{"policy_id":"payments","name":"%s","version":%s,"state":"%s","policy_digest":"%s","default":"%s","rules":[%s],"tests":[],
			"written_at":"2026-11-20T12:00:00.000Z","written_by":"acc_red-owner","activated_at":%s,"archived_at":%s}`,
			name, version, state, digest(t, version, name, decision), decision, enforced, activated, archived)
	}
	const now = `"2026-11-20T12:00:00.000Z"`
	create := `{"policy_id":"payments","name":"Payments","rules":[` + paymentRule + `]}`
	equal(t, "created", w.call(201, "POST", "/policies", create), view("1", "Payments", "allow", "draft", "null", "null"))
	w.call(201, "POST", "/policies", create, as("blue-owner"))
	w.refuses("taken", w.request("POST", "/policies", create), 409, "policy_id is taken")
	equal(t, "changed", w.call(200, "PATCH", "/policies/payments", `{"default":"deny"}`), view("1", "Payments", "deny", "draft", "null", "null"))
	active := view("1", "Payments", "deny", "active", now, "null")
	equal(t, "activated", w.call(200, "POST", "/policies/payments/activate", ""), active)
	w.refuses("activated again", w.request("POST", "/policies/payments/activate", ""), 409, "The latest version of the policy is already active: change it first")
	w.refuses("no draft", w.request("DELETE", "/policies/payments", ""), 409, "The policy has no draft")
	draft := view("2", "Second", "deny", "draft", "null", "null")
	equal(t, "next draft", w.call(200, "PATCH", "/policies/payments", `{"name":"Second"}`), draft)
	equal(t, "newest", w.call(200, "GET", "/policies/payments", "", as("red-member")), draft)
	equal(t, "version 1", w.call(200, "GET", "/policies/payments?version=1", ""), active)
	equal(t, "listed", w.call(200, "GET", "/policies", ""),
		`{"policies":[{"policy_id":"payments","name":"Second","version":2,"state":"draft","active_version":1,"updated_at":`+now+`,"updated_by":"acc_red-owner"}],"next":null}`)
	w.call(204, "DELETE", "/policies/payments", "")
	equal(t, "draft deleted", w.call(200, "GET", "/policies/payments", ""), active)
	equal(t, "blue", w.call(200, "GET", "/policies", "", as("blue-owner")),
		`{"policies":[{"policy_id":"payments","name":"Payments","version":1,"state":"draft","active_version":null,"updated_at":`+now+`,"updated_by":"acc_blue-owner"}],"next":null}`)
	w.call(204, "DELETE", "/policies/payments", "", as("blue-owner"))
	w.refuses("blue, gone", w.request("GET", "/policies/payments", "", as("blue-owner")), 404, "Not found")
	if got, want := w.kinds(red), []string{"ledger_policy_activated by acc_red-owner"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := w.kinds(blue); got != nil {
		t.Errorf("blue's ledger has %v", got)
	}
}

func TestPoliciesRefuse(t *testing.T) {
	w := newWorld(t)
	w.call(201, "POST", "/policies", `{"policy_id":"blue-only","name":"n"}`, as("blue-owner"))
	for _, name := range []string{"nothing", "blue-only", "a%2Fb", "%E4"} {
		w.refuses("get "+name, w.request("GET", "/policies/"+name, ""), 404, "Not found")
		w.refuses("patch "+name, w.request("PATCH", "/policies/"+name, "{}"), 404, "Not found")
		w.refuses("delete "+name, w.request("DELETE", "/policies/"+name, ""), 404, "Not found")
		w.refuses("activate "+name, w.request("POST", "/policies/"+name+"/activate", ""), 404, "Not found")
	}
	w.call(201, "POST", "/policies", `{"policy_id":"payments","name":"n"}`)
	for _, version := range []string{"0", "-1", "1.5", "x", "9007199254740993"} {
		w.refuses("version "+version, w.request("GET", "/policies/payments?version="+version, ""), 422, "version must be a whole number from 1")
	}
	w.refuses("version 2", w.request("GET", "/policies/payments?version=2", ""), 404, "Not found")
	w.refuses("another version", w.request("PATCH", "/policies/payments", `{"version":2}`), 409,
		"The policy was changed in the meantime: read it again, or omit version and policy_digest")
	w.refuses("policy_id", w.request("PATCH", "/policies/payments", `{"policy_id":"other"}`), 422, "policy_id cannot be changed")
	w.refuses("version given", w.request("POST", "/policies", `{"name":"n","version":1}`), 422, "version is assigned by the service: omit it")
	w.refuses("version 0", w.request("POST", "/policies/payments/activate", `{"version":0}`), 422, "version must be a whole number from 1")
	w.refuses("activate version 2", w.request("POST", "/policies/payments/activate", `{"version":2}`), 404, "Not found")
	w.refuses("not active", w.request("POST", "/policies/payments/deactivate", ""), 409, "The policy is not active")
	w.refuses("deactivate blue's", w.request("POST", "/policies/blue-only/deactivate", ""), 404, "Not found")
	w.refuses("no JSON", w.request("POST", "/policies", `{`), 422, "The policy is not valid JSON")
	limited := w.call(201, "POST", "/policies", `{"name":"n","rules":[{"rule_id":"r","tool":"a","decision":"deny","limit":{"limit_id":"l","sum":"amount","currency":"USD","by":"agent","window_seconds":60,"max":1.5}}]}`)
	equal(t, "limit", limited["rules"].([]any)[0].(map[string]any)["limit"].(map[string]any),
		`{"by":"agent","count":false,"currency":"USD","limit_id":"l","max":"1.5","sum":"amount","window_seconds":60}`)
	w.call(200, "POST", "/policies/"+limited["policy_id"].(string)+"/activate", "")
	if v := w.call(201, "POST", "/policies", `{"name":"n","rules":[]}`)["policy_id"].(string); !strings.HasPrefix(v, "pol_") {
		t.Errorf("got policy id %s", v)
	}
}

// PATCH accepts what GET answers, and an older version can be activated again.
func TestPolicyRoundTrip(t *testing.T) {
	w := newWorld(t)
	w.call(201, "POST", "/policies", `{"policy_id":"payments","name":"Payments","rules":[`+paymentRule+`],
		"tests":[{"name":"t","input":{"tool_name":"acme.pay.x"},"expect":{"decision":"deny"}}]}`)
	w.call(200, "POST", "/policies/payments/activate", `{}`)
	shown := w.do(w.request("GET", "/policies/payments", ""))
	changed := strings.Replace(shown.text, `"name":"Payments"`, `"name":"Second"`, 1)
	if got := w.call(200, "PATCH", "/policies/payments", changed); got["name"] != "Second" || fmt.Sprint(got["version"]) != "2" {
		t.Errorf("got %v", got)
	}
	w.refuses("changed meanwhile", w.request("PATCH", "/policies/payments", changed), 409,
		"The policy was changed in the meantime: read it again, or omit version and policy_digest")
	w.call(200, "POST", "/policies/payments/activate", `{"version":2}`)
	old := w.call(200, "GET", "/policies/payments?version=1", "")
	body := fmt.Sprintf(`{"version":1,"policy_digest":"%s"}`, old["policy_digest"])
	if got := w.call(200, "POST", "/policies/payments/activate", body); got["state"] != "active" || got["archived_at"] != nil {
		t.Errorf("got %v", got)
	}
	w.refuses("digest", w.request("POST", "/policies/payments/activate", strings.Replace(body, ":1,", ":2,", 1)), 409,
		"policy_digest does not match the version: read it again")
	if got := w.call(200, "POST", "/policies/payments/deactivate", ""); got["state"] != "archived" {
		t.Errorf("got %v", got)
	}
	if got, want := w.kinds(red), 6; len(got) != want {
		t.Errorf("got %v, want %d statements", got, want)
	}
}

func TestTwoPersonPolicy(t *testing.T) {
	w := newWorld(t)
	const forbidden = "Your role does not allow this"
	w.refuses("admin", w.request("PATCH", "/organization", `{"two_person_policy":true}`, as("red-admin")), 403, forbidden)
	if got := w.call(200, "PATCH", "/organization", `{"two_person_policy":true}`); got["two_person_policy"] != true {
		t.Errorf("got %v", got)
	}
	w.call(200, "PATCH", "/organization", `{"name":"Red"}`, as("red-admin"))
	w.refuses("admin", w.request("PATCH", "/organization", `{"two_person_policy":false}`, as("red-admin")), 403, forbidden)
	for _, owner := range []string{"red-owner", "blue-owner"} {
		w.call(201, "POST", "/policies", `{"policy_id":"payments","name":"n"}`, as(owner))
	}
	got := w.do(w.request("POST", "/policies/payments/activate", ""))
	want := `{"error":"You changed this version last: another person has to activate it","code":"second_person"}`
	if got.status != 409 || strings.TrimSpace(got.text) != want {
		t.Errorf("got %d %s, want %s", got.status, got.text, want)
	}
	w.call(200, "POST", "/policies/payments/activate", "", as("red-admin"))
	w.refuses("no policy", w.request("POST", "/policies/payments/deactivate", ""), 409,
		"Policies of this organization need two people: activate a version that another person has changed")
	w.call(200, "POST", "/policies/payments/activate", "", as("blue-owner"))
	w.call(200, "POST", "/policies/payments/deactivate", "", as("blue-owner"))
}

// Only the organization itself can list the versions of a policy, latest first, in pages.
func TestPolicyVersions(t *testing.T) {
	w := newWorld(t)
	w.call(201, "POST", "/policies", `{"policy_id":"payments","name":"First","rules":[`+paymentRule+`]}`)
	w.call(200, "POST", "/policies/payments/activate", "")
	w.call(200, "PATCH", "/policies/payments", `{"name":"Second"}`, as("red-admin"))
	w.call(200, "POST", "/policies/payments/activate", "")
	w.call(200, "PATCH", "/policies/payments", `{"name":"Third"}`)
	const now = `"2026-11-20T12:00:00.000Z"`
	version := func(number, name, state, by, activated, archived string) string {
		return fmt.Sprintf(`{"version":%s,"name":"%s","state":"%s","policy_digest":"%s","written_at":%s,"written_by":"acc_%s","activated_at":%s,"archived_at":%s}`,
			number, name, state, digest(t, number, name, "allow"), now, by, activated, archived)
	}
	first := version("1", "First", "archived", "red-owner", now, now)
	rest := version("3", "Third", "draft", "red-owner", "null", "null") + "," + version("2", "Second", "active", "red-admin", now, "null")
	equal(t, "all", w.call(200, "GET", "/policies/payments/versions", "", as("red-member")), `{"versions":[`+rest+`,`+first+`],"next":null}`)
	equal(t, "a page", w.call(200, "GET", "/policies/payments/versions?limit=2", ""), `{"versions":[`+rest+`],"next":"2"}`)
	equal(t, "the next", w.call(200, "GET", "/policies/payments/versions?limit=2&after=2", ""), `{"versions":[`+first+`],"next":null}`)
	equal(t, "behind the last", w.call(200, "GET", "/policies/payments/versions?after=1", ""), `{"versions":[],"next":null}`)
	for _, after := range []string{"0", "x", "-1"} {
		w.refuses("after "+after, w.request("GET", "/policies/payments/versions?after="+after, ""), 422, "after must be a whole number from 1")
	}
	w.refuses("another organization's", w.request("GET", "/policies/payments/versions", "", as("blue-owner")), 404, "Not found")
	w.call(204, "DELETE", "/policies/payments", "")
	listed := w.call(200, "GET", "/policies", "")["policies"].([]any)[0].(map[string]any)
	if listed["updated_by"] != "acc_red-admin" || listed["name"] != "Second" {
		t.Errorf("without the draft: got %v", listed)
	}
}
