package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/tenant/org"
)

// Saved views are of one organization, and roles that change nothing else only read them.
func TestViews(t *testing.T) {
	w := newWorld(t)
	names := func(answer map[string]any) string {
		var all []string
		for _, v := range answer["views"].([]any) {
			v := v.(map[string]any)
			all = append(all, fmt.Sprint(v["name"], "=", v["search"], " by ", v["saved_by"]))
		}
		return strings.Join(all, ", ")
	}
	w.call(200, "PUT", "/views", `{"name":"b","search":"tool:x"}`, as("red-approver"))
	w.call(200, "PUT", "/views", `{"name":"a","search":"tool:y"}`, as("red-policy_editor"))
	got := names(w.call(200, "PUT", "/views", `{"name":"B","search":"tool:z","renames":"b"}`, as("red-admin")))
	if again := names(w.call(200, "GET", "/views", "", as("red-member"))); got != again || !strings.HasPrefix(got, "a=tool:y by ") || !strings.Contains(got, ", B=tool:z by ") {
		t.Errorf("got %s, then %s", got, again)
	}
	w.refuses("taken", w.request("PUT", "/views", `{"name":"A","search":"x","renames":"B"}`), 409, "Another view has this name")
	w.refuses("unknown", w.request("PUT", "/views", `{"name":"c","search":"x","renames":"none"}`), 404, "Not found")
	w.refuses("of blue", w.request("DELETE", "/views?name=a", "", as("blue-owner")), 404, "Not found")
	if got := names(w.call(200, "GET", "/views", "", as("blue-owner"))); got != "" {
		t.Errorf("blue has %s", got)
	}
	w.call(204, "DELETE", "/views?name=A", "")
	w.refuses("again", w.request("DELETE", "/views?name=a", ""), 404, "Not found")
	audit := fmt.Sprint(w.call(200, "GET", "/audit?kind=ledger_view_saved", "")["acts"], w.call(200, "GET", "/audit?kind=ledger_view_removed", "")["acts"])
	if !strings.Contains(audit, "saved the view B, before: b") || !strings.Contains(audit, "removed the view a") || strings.Contains(audit, "tool:") {
		t.Errorf("audit: %s", audit)
	}
	w.own(red, map[org.Limit]uint64{org.StatementsPerMinute: 1})
	w.bounded("pace", w.request("DELETE", "/views?name=b", ""), 429, "rate_limited", "Too many changes: at most 1 in a minute")
}
