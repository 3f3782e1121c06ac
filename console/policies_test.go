package console_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/policy"
)

const paymentRule = `{"rule_id":"r1","tool":"acme.pay.*","decision":"deny"}`

// enforced is paymentRule with every member written out.
const enforced = `{"agents":[],"decision":"deny","limit":null,"mode":"enforce","obligations":[],"on_error":"match",` +
	`"priority":0,"reason":"","requires":[],"rule_id":"r1","tool":"acme.pay.*","when":null}`

// digest is the policy_digest of the payments policy with these members.
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
	w.refuses("activated again", w.request("POST", "/policies/payments/activate", ""), 409, "The newest version of the policy is active already: change it first")
	w.refuses("no draft", w.request("DELETE", "/policies/payments", ""), 409, "The policy has no draft")
	draft := view("2", "Second", "deny", "draft", "null", "null")
	equal(t, "next draft", w.call(200, "PATCH", "/policies/payments", `{"name":"Second"}`), draft)
	equal(t, "newest", w.call(200, "GET", "/policies/payments", "", as("red-member")), draft)
	equal(t, "version 1", w.call(200, "GET", "/policies/payments?version=1", ""), active)
	equal(t, "listed", w.call(200, "GET", "/policies", ""),
		`{"policies":[{"policy_id":"payments","name":"Second","version":2,"state":"draft","active_version":1,"updated_at":`+now+`}],"next":null}`)
	w.call(204, "DELETE", "/policies/payments", "")
	equal(t, "draft deleted", w.call(200, "GET", "/policies/payments", ""), active)
	equal(t, "blue", w.call(200, "GET", "/policies", "", as("blue-owner")),
		`{"policies":[{"policy_id":"payments","name":"Payments","version":1,"state":"draft","active_version":null,"updated_at":`+now+`}],"next":null}`)
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
	for _, version := range []string{"0", "-1", "1.5", "x", "9007199254740993", ""} {
		w.refuses("version "+version, w.request("GET", "/policies/payments?version="+version, ""), 422, "version must be a whole number from 1")
	}
	w.refuses("version 2", w.request("GET", "/policies/payments?version=2", ""), 404, "Not found")
	w.refuses("version given", w.request("PATCH", "/policies/payments", `{"version":2}`), 422, "version is given by the service: leave it out")
	w.refuses("no JSON", w.request("POST", "/policies", `{`), 422, "The policy is not valid JSON")
	limited := w.call(201, "POST", "/policies", `{"name":"n","rules":[{"rule_id":"r","tool":"a","decision":"deny","limit":{"limit_id":"l","sum":"amount","currency":"USD","by":"agent","window_seconds":60,"max":1.5}}]}`)
	equal(t, "limit", limited["rules"].([]any)[0].(map[string]any)["limit"].(map[string]any),
		`{"by":"agent","count":false,"currency":"USD","limit_id":"l","max":"1.5","sum":"amount","window_seconds":60}`)
	w.call(200, "POST", "/policies/"+limited["policy_id"].(string)+"/activate", "")
	if v := w.call(201, "POST", "/policies", `{"name":"n","rules":[]}`)["policy_id"].(string); !strings.HasPrefix(v, "pol_") {
		t.Errorf("got policy id %s", v)
	}
}
