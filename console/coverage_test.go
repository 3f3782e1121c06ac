package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
)

const standardCoverage = `{"format":"ndjson","file":"{\"tool\":\"acme.refund\",\"call_id\":\"c\"}","from":"2026-01-01T00:00:00Z","to":"2027-01-01T00:00:00Z"}`

// A record is compared with the organization's own acts, and the log states the result without a text of the record.
func TestCoverage(t *testing.T) {
	w := newWorld(t)
	w.guarded(red, 1, id.Allow, "ok")
	w.guarded(red, 2, id.Deny, "")
	w.guarded(blue, 3, id.Allow, "ok")
	day := w.Clock().UTC().Format("2006-01-02")
	ask := func(file, more string) string {
		return fmt.Sprintf(`{"format":"csv","file":%q,"from":"%sT00:00:00Z","to":"2999-01-01T00:00:00Z"%s}`, file, day, more)
	}
	const calls = "tool,call_id,agent\nacme.refund,act-1,\nacme.refund,act-1,\nacme.refund,act-2,\nacme.refund,act-3,CANARY\n"
	got := w.call(201, "POST", "/coverage", ask(calls, ""), as("red-auditor"))
	counts := got["counts"].(map[string]any)
	if fmt.Sprint(got["covered"], counts["matched"], counts["unpermitted"], counts["missing"], counts["extra"], counts["acts"]) != "false 1 1 2 0 2" ||
		fmt.Sprint(got["by_rule"]) != "map[call_id:1]" || got["matched"] != nil {
		t.Errorf("got %v", got)
	}
	if found := fmt.Sprint(got["missing"]); !strings.Contains(found, "reason:repeated") || !strings.Contains(found, "reason:no_act") {
		t.Errorf("missing: got %s", found)
	}
	stated := fmt.Sprint(w.call(200, "GET", "/audit?kind=ledger_coverage_compared", "")["acts"])
	if !strings.Contains(stated, "reason:repeated") || !strings.Contains(stated, fmt.Sprint(got["file_sha256"])) || strings.Contains(stated, "CANARY") ||
		!strings.Contains(stated, "compared a record of calls from "+day) {
		t.Errorf("the log states %s", stated)
	}
	if of := w.call(200, "GET", "/audit?kind=ledger_coverage_compared", "", as("blue-owner"))["acts"]; len(of.([]any)) != 0 {
		t.Errorf("blue sees %v", of)
	}
	blues := w.call(201, "POST", "/coverage", ask(calls, `,"tolerance_ms":0,"strict":true`), as("blue-owner"))["counts"].(map[string]any)
	if fmt.Sprint(blues["matched"], blues["missing"], blues["acts"]) != "0 4 1" {
		t.Errorf("blue: got %v", blues)
	}
	again := w.call(201, "POST", "/coverage", ask(calls, ""), as("red-auditor"))
	if again["log_index"] == got["log_index"] {
		t.Error("two comparisons have one event")
	}
	for _, role := range []string{"red-member", "red-approver"} {
		w.refuses(role, w.request("POST", "/coverage", ask(calls, ""), as(role)), 403, "Your role does not allow this")
	}
	for body, message := range map[string]string{
		ask("tool\nx,y\n", ""): "file: line 2: wrong number of fields",
		`{"format":"xml","file":"","from":"2026-01-01T00:00:00Z","to":"2027-01-01T00:00:00Z"}`: "format must be ndjson, csv, otlp or access",
		`{"format":"csv","file":"tool\n","to":"2027-01-01T00:00:00Z"}`:                         "from and to must be times, and from the earlier one",
		ask(calls, `,"tolerance_ms":86400001`):                                                 "tolerance_ms must be at most 86400000",
		ask(calls, `,"paths":["x"]`):                                                           "paths: a path must be like POST /v1/refunds=payments.refund",
		ask(calls, `,"fields":{"caller":"x"}`):                                                 `file: a call has no field "caller"`,
		ask("tool\n"+strings.Repeat("a\n", 20_001), ""):                                        "file: line 20002: more than 20000 calls: compare a part of the range",
	} {
		w.refuses(message, w.request("POST", "/coverage", body), 422, message)
	}
	w.refuses("too large", w.request("POST", "/coverage", ask(strings.Repeat("x", 4<<20), "")), 413, "The body is too large")
}
