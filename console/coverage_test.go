package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/console"
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

// An answer has the first 100 rows of each kind, and the event the first 20 missing and unpermitted calls.
func TestFindingsOfCoverage(t *testing.T) {
	w := newWorld(t)
	var calls strings.Builder
	calls.WriteString("tool,call_id\n")
	for n := range 101 {
		w.guarded(red, n, id.Allow, "")
		w.guarded(red, 1000+n, id.Deny, "")
		fmt.Fprintf(&calls, "acme.refund,act-%d\nacme.refund,missing-%d\n", 1000+n, n)
	}
	body := fmt.Sprintf(`{"format":"csv","file":%q,"from":"2000-01-01T00:00:00Z","to":"2999-01-01T00:00:00Z"}`, calls.String())
	got := w.call(201, "POST", "/coverage", body)
	counts := got["counts"].(map[string]any)
	for kind, first := range map[string]string{"missing": "no_act", "unpermitted": "denied", "extra": "open"} {
		rows := got[kind].([]any)
		if counts[kind] != 101.0 || len(rows) != 100 || rows[0].(map[string]any)["reason"] != first {
			t.Errorf("%s: got %v, and %d rows of which the first is %v, want 101, 100 and %s", kind, counts[kind], len(rows), rows[0], first)
		}
	}
	stated := w.call(200, "GET", "/audit?kind=ledger_coverage_compared", "")["acts"].([]any)[0].(map[string]any)["payload"].(map[string]any)
	for _, kind := range []string{"missing", "unpermitted"} {
		if rows := stated[kind].([]any); len(rows) != 20 || stated["counts"].(map[string]any)[kind] != 101.0 {
			t.Errorf("the event: got %d rows of %s and %v, want 20 and 101", len(rows), kind, stated["counts"])
		}
	}
}

// A comparison reads as many acts as the bound allows, those of other organizations not counted.
func TestActsOfCoverage(t *testing.T) {
	w := newWorld(t, func(o *console.Options) { o.MaxCoverageActs = 3 })
	for n := range 3 {
		w.guarded(red, n, id.Allow, "")
		w.guarded(blue, n, id.Allow, "")
	}
	w.call(201, "POST", "/coverage", coverageOfAll)
	w.guarded(red, 3, id.Allow, "")
	w.refuses("one act more", w.request("POST", "/coverage", coverageOfAll), 422,
		"The range has more than 3 acts: compare a part of it, or use aps coverage")
	w.call(201, "POST", "/coverage", coverageOfAll, as("blue-owner"))
}

const coverageOfAll = `{"format":"ndjson","file":"{\"tool\":\"acme.refund\",\"call_id\":\"c\"}","from":"2000-01-01T00:00:00Z","to":"2999-01-01T00:00:00Z"}`

// An organization has one comparison in flight, and the service two.
func TestComparisonsInFlight(t *testing.T) {
	w := newWorld(t)
	w.found(green, "green")
	ask := func(who string) *http.Request { return w.request("POST", "/coverage", coverageOfAll, as(who)) }
	release := w.Store.Hold() // no statement becomes durable
	answers := make(chan got, 4)
	begin := func(who string) {
		for range 2 {
			r := ask(who)
			go func() { answers <- w.do(r) }()
		}
		select {
		case g := <-answers:
			if g.status != 429 || !strings.Contains(g.text, "Another comparison is running; ask again later") || g.header.Get("Retry-After") != "10" {
				t.Errorf("%s's second: got %d %s, Retry-After %q", who, g.status, g.text, g.header.Get("Retry-After"))
			}
		case <-time.After(2 * time.Minute):
			t.Errorf("%s: two comparisons are in flight", who)
		}
	}
	begin("red-owner")
	begin("blue-owner")
	third := make(chan got, 1)
	r := ask("green-owner")
	go func() { third <- w.do(r) }()
	select {
	case g := <-third:
		if g.status != 429 || !strings.Contains(g.text, "Another comparison is running; ask again later") {
			t.Errorf("the third organization: got %d %s", g.status, g.text)
		}
	case <-time.After(2 * time.Minute):
		t.Error("three comparisons are in flight")
	}
	release()
	for range 2 {
		if g := <-answers; g.status != 201 {
			t.Errorf("got %d %s", g.status, g.text)
		}
	}
	w.call(201, "POST", "/coverage", coverageOfAll, as("green-owner"))
}
