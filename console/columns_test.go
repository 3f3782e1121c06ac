package console_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
)

// Columns are named by an admin, shown and compared for roles that read payloads, and refused to others.
func TestColumns(t *testing.T) {
	w := newWorld(t)
	list := func(query string, change ...string) (names []string, first map[string]any) {
		t.Helper()
		role := "red-auditor"
		if len(change) > 0 {
			role = change[0]
		}
		for _, a := range w.call(200, "GET", "/acts?order=oldest&"+query, "", as(role))["acts"].([]any) {
			if names = append(names, a.(map[string]any)["event_id"].(string)); first == nil {
				first = a.(map[string]any)
			}
		}
		return names, first
	}
	w.guarded(red, 1, id.Allow, "ok")
	w.refuses("no columns", w.request("GET", "/acts?column=amount%3E1", ""), 422, "The organization has no columns of payloads: an admin names them in the settings")
	if got := fmt.Sprint(w.call(200, "PUT", "/columns", `{"columns":["amount","call_id"]}`, as("red-admin"))); !strings.Contains(got, "path:amount") ||
		!strings.Contains(got, "building:false") {
		t.Errorf("got %s", got)
	}
	w.refuses("too many", w.request("PUT", "/columns", `{"columns":["a","b","c","d","e","f","g","h","i"]}`), 422, "columns must be at most 8")
	for n := 2; n < 8; n++ {
		w.guarded(red, n, id.Allow, "ok")
	}
	w.guarded(blue, 5, id.Allow, "ok")
	for query, want := range map[string]string{
		"amount>5": "act-6 act-7", "amount>=5": "act-5 act-6 act-7", "amount<1": "", "amount!=3": "act-2 act-4 act-5 act-6 act-7", "amount = 3": "act-3",
		"amount=1":     "", // before the column was named
		"call_id~CT-4": "act-4", "call_id=act-4": "act-4", "call_id>4": "",
	} {
		if got, _ := list("column=" + url.QueryEscape(query)); strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", query, got, want)
		}
	}
	if got, _ := list("column=" + url.QueryEscape("amount>3") + "&column=" + url.QueryEscape("amount<6") + "&outcome=done"); fmt.Sprint(got) != "[act-4 act-5]" {
		t.Errorf("two conditions: got %v", got)
	}
	stats := w.call(200, "GET", "/stats?column="+url.QueryEscape("amount>3"), "", as("red-auditor"))
	if fmt.Sprint(stats["acts"]) != "4" {
		t.Errorf("statistics: got %v", stats["acts"])
	}
	_, first := list("limit=1")
	if got := fmt.Sprint(first["columns"], first["absent"]); got != "map[amount:1 call_id:act-1] <nil>" { // shown from the envelope
		t.Errorf("got %s", got)
	}
	w.call(200, "PUT", "/columns", `{"columns":["amount","phase.x"],"backfill":true}`, as("red-admin"))
	if got, first := list("column=" + url.QueryEscape("amount=1")); fmt.Sprint(got, first["columns"], first["absent"]) != "[act-1] map[amount:1 phase.x:<nil>] map[phase.x:missing]" {
		t.Errorf("backfilled: got %v %v", got, first)
	}
	rows := w.download("/acts?format=csv&column="+url.QueryEscape("amount=6"), "csv")
	if len(rows) != 1 || strings.Join(rows[0][17:], ",") != "trc-6,,,,6," {
		t.Errorf("CSV: got %q", rows)
	}
	for _, role := range []string{"red-member", "red-approver"} {
		w.refuses(role, w.request("GET", "/acts?column=amount%3E1", "", as(role)), 403, "Your role does not allow this")
		w.refuses(role, w.request("GET", "/stats?column=amount%3E1", "", as(role)), 403, "Your role does not allow this")
		w.refuses(role, w.request("PUT", "/columns", `{"columns":[]}`, as(role)), 403, "Your role does not allow this")
		if _, first := list("limit=1", role); first["columns"] != nil || first["absent"] != nil {
			t.Errorf("%s sees %v", role, first)
		}
	}
	nine := "column=" + strings.Repeat("amount%3E1&column=", 8) + "amount%3E1"
	for query, message := range map[string]string{
		"column=other%3E1":  "column must name one of the organization's columns: amount, phase.x",
		"column=amount%3Ex": "The operators > >= < and <= of column compare numbers: > needs a number",
		"column=amount":     "column must be a path, an operator (= != > >= < <= ~) and a value, such as amount_usd>500",
		"column=amount%3D" + strings.Repeat("x", 129): "The value of column must have at most 128 bytes, because longer texts are not indexed",
		nine: "column must be given at most 8 times",
	} {
		w.refuses(query, w.request("GET", "/acts?"+query, ""), 422, message)
	}
	if got := fmt.Sprint(w.call(200, "GET", "/columns", "", as("blue-owner"))); got != "map[columns:[]]" {
		t.Errorf("blue has %s", got)
	}
	audit := fmt.Sprint(w.call(200, "GET", "/audit?kind=ledger_settings_changed", "")["acts"])
	if !strings.Contains(audit, "changed settings: columns; columns of acts: amount, phase.x; with earlier acts: amount, phase.x") {
		t.Errorf("audit: %s", audit)
	}
}
