package console_test

import "testing"

// A frozen ledger accepts no change, and no event is judged by it. Stored objects remain readable, and the organization
// reports the fault.
func TestFrozen(t *testing.T) {
	const isFrozen = "The organization's ledger is frozen"
	w := newWorld(t)
	question, other := w.ask(red), w.ask(blue)
	ballot := `{"vote":"approve","action_digest":"` + question.ActionDigest.String() + `"}`
	if got, there := w.call(200, "GET", "/organization", "")["fault"]; there {
		t.Errorf("before: got fault %v", got)
	}
	if err := w.Ledgers.Freeze(t.Context(), red, "a test"); err != nil {
		t.Fatal(err)
	}
	approval := "/approvals/" + string(question.ID)
	for name, r := range map[string]struct{ method, path, body string }{
		"simulate input":  {"POST", "/policies/p/simulate", `{"input":{"tool_name":"acme.pay"}}`},
		"simulate events": {"POST", "/policies/p/simulate", `{"last":10}`},
		"activate":        {"POST", "/policies/p/activate", ""},
		"vote":            {"POST", approval + "/votes", ballot},
		"revoke approval": {"POST", approval + "/revoke", ""},
		"ingest key":      {"POST", "/ingest-keys", `{"name":"n"}`},
		"settings":        {"PATCH", "/organization", `{"name":"another"}`},
	} {
		w.refuses(name, w.request(r.method, r.path, r.body, as("red-admin")), 503, isFrozen)
	}
	for _, path := range []string{"/policies", "/policies/p", "/approvals", approval, "/agents", "/ingest-keys", "/runs", "/organization/plan-usage"} {
		w.call(200, "GET", path, "")
	}
	if got := w.call(200, "GET", "/organization", "")["fault"]; got != "frozen" {
		t.Errorf("got fault %v, want frozen", got)
	}

	w.call(200, "POST", "/policies/p/simulate", `{"last":10}`, as("blue-owner"))
	ballot = `{"vote":"approve","action_digest":"` + other.ActionDigest.String() + `"}`
	w.call(200, "POST", "/approvals/"+string(other.ID)+"/votes", ballot, as("blue-admin"))
	if got, there := w.call(200, "GET", "/organization", "", as("blue-owner"))["fault"]; there {
		t.Errorf("blue: got fault %v", got)
	}
}
