package simulate_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/simulate"
	"github.com/agentledger/agentledger/policy"
)

const capped = `[{"rule_id":"cap","tool":"acme.pay.*","decision":"deny","when":"payload.amount > 100"}]`

func TestEvents(t *testing.T) {
	w := newWorld(t)
	strict, strictPolicy := compile(t, capped)
	_, loose := compile(t, `[{"rule_id":"watch","tool":"**","decision":"deny","mode":"shadow","when":"payload.amount < 500"}]`)
	for i := range 70 { // more than two batches
		w.send(red, strict, "acme.pay.refund", fmt.Sprintf(`{"amount":%d}`, 80+i), id.Allow)
	}
	w.send(red, strict, "", `{}`, id.Allow)
	w.send(red, strict, "acme.pay.refund", `{"amount":500}`, id.Deny)
	w.send(blue, strict, "acme.pay.refund", `{"amount":500}`, id.Allow)
	w.erased[3], w.erased[70] = true, true // the second also has no tool
	got, err := w.newSimulator().SimulateEvents(t.Context(), red, *loose, simulate.Range{Last: 1000})
	if err != nil {
		t.Fatal(err)
	}
	changes := got.Changes
	got.Changes = nil
	want := simulate.Report{Begin: 0, End: 72, Complete: true, Evaluated: 70, WithoutTool: 1, Erased: 1, Shadow: map[string]int{"watch": 69}, Changed: 49, Loosened: 49, NowAllowed: 49,
		Seen: map[id.Tool]map[string]bool{"acme.pay.refund": {"amount": true}}}
	if fmt.Sprint(got) != fmt.Sprint(want) || len(changes) != 49 {
		t.Errorf("got %+v and %d changes, want %+v", got, len(changes), want)
	}
	since := simulate.Range{Last: 1000, Since: changes[0].ReceivedAt + 1}
	if got, err := w.newSimulator().SimulateEvents(t.Context(), red, *loose, since); err != nil || got.Changed >= 49 {
		t.Errorf("since a time: got %+v, %v", got, err)
	}
	if c := changes[0]; c.Sequence != 22 || c.Recorded != id.Deny || c.RecordedRule != "cap" || c.RecordedPolicy != "spending" || c.Simulated != id.Allow || c.Rule != "default" {
		t.Errorf("got %+v", c)
	}
	if got, err = w.newSimulator().SimulateEvents(t.Context(), red, *strictPolicy, simulate.Range{Last: 1000}); err != nil || got.Changed != 0 {
		t.Errorf("the same policy: got %+v, %v", got, err)
	}
	if got, err = w.newSimulator().SimulateEvents(t.Context(), red, *loose, simulate.Range{Last: 5}); err != nil || got.Begin != 67 || got.Evaluated != 4 || got.Changed != 3 {
		t.Errorf("the last five: got %+v, %v", got, err)
	}
	if got, err = w.newSimulator().SimulateEvents(t.Context(), blue, *loose, simulate.Range{Last: 5}); err != nil || got.Evaluated != 1 || got.Changed != 1 {
		t.Errorf("blue: got %+v, %v", got, err)
	}
	for name, tc := range map[string]struct {
		of         simulate.Range
		begin, end id.Index
	}{
		"below an index":  {simulate.Range{Last: 5, To: 10}, 5, 10},
		"below the begin": {simulate.Range{Last: 5, To: 3}, 0, 3},
		"beyond the end":  {simulate.Range{Last: 5, To: 1000}, 67, 72},
	} {
		if got, err := w.newSimulator().SimulateEvents(t.Context(), red, *loose, tc.of); err != nil ||
			got.Begin != tc.begin || got.End != tc.end || !got.Complete {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

// Limits are counted over the events of the simulation, in their windows.
func TestEventsWithLimits(t *testing.T) {
	w := newWorld(t)
	_, limited := compile(t, `[{"rule_id":"cap","tool":"**","decision":"deny","limit":{"limit_id":"l","sum":"amount","by":"agent","window_seconds":3600,"max":100}}]`)
	for range 4 { // 40, 80, denied, and 40 again after the window
		w.send(red, nil, "acme.pay.refund", `{"amount":40}`, id.Allow)
		w.Pass(25 * time.Minute)
	}
	got, err := w.newSimulator().SimulateEvents(t.Context(), red, *limited, simulate.Range{Last: 10})
	if err != nil || got.Changed != 1 || got.Changes[0].Sequence != 3 || got.Tightened != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// An organization can run one simulation at a time, and the time is bounded.
func TestBounds(t *testing.T) {
	w := newWorld(t)
	_, loose := compile(t, `[]`)
	for range 40 {
		w.send(red, nil, "acme.pay.refund", `{}`, id.Allow)
	}
	r := w.newSimulator()
	w.during = func() {
		w.during = nil
		if _, err := r.SimulateEvents(t.Context(), red, *loose, simulate.Range{Last: 1}); !fault.Is(err, fault.Overloaded) {
			t.Errorf("a second one at a time: got %v", err)
		}
		if _, err := r.EvaluateTrial(t.Context(), red, *loose, &policy.Trial{}); !fault.Is(err, fault.Overloaded) {
			t.Errorf("a trial meanwhile: got %v", err)
		}
		w.Pass(time.Minute)
	}
	got, err := r.SimulateEvents(t.Context(), red, *loose, simulate.Range{Last: 40})
	if err != nil || got.Complete || got.End != 32 || got.Evaluated != 32 {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err = r.SimulateEvents(t.Context(), red, *loose, simulate.Range{Last: 40}); err != nil || !got.Complete {
		t.Errorf("afterwards: got %+v, %v", got, err)
	}
}

// Results are reported but not decided, as when they were stored: no limit counts them.
func TestEventsWithResults(t *testing.T) {
	w := newWorld(t)
	_, limited := compile(t, `[{"rule_id":"cap","tool":"**","decision":"deny","limit":{"limit_id":"l","count":true,"by":"agent","window_seconds":3600,"max":2}}]`)
	for range 2 {
		intent, _ := w.send(red, nil, "acme.pay.refund", `{"phase":"intent"}`, id.Allow)
		w.result(red, intent)
	}
	got, err := w.newSimulator().SimulateEvents(t.Context(), red, *limited, simulate.Range{Last: 10})
	if err != nil || got.Evaluated != 2 || got.Results != 2 || got.Changed != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
	w.kind = "made_up"
	w.send(red, nil, "acme.pay.refund", `{}`, id.Allow)
	if got, err = w.newSimulator().SimulateEvents(t.Context(), red, *limited, simulate.Range{Last: 10}); err != nil || got.Changed != 1 || got.Tightened != 1 {
		t.Errorf("another kind: got %+v, %v", got, err)
	}
}

// The members of payloads are noted by tool, for a bounded number of tools and names, and only of the organization's own events.
func TestSeenMembers(t *testing.T) {
	w := newWorld(t)
	simulator := simulate.New(simulate.Options{Ledgers: w, Clock: w.Clock})
	many := func(n int, name string) string {
		text := "{"
		for i := range n {
			text += fmt.Sprintf(`"%s%d":[{"x":1}],`, name, i)
		}
		return text + `"z":1}`
	}
	w.send(red, nil, "a.first", `{"one":1,"two":{"three":3}}`, id.Allow)
	w.send(red, nil, "a.first", `{"four":[{"five":5}]}`, id.Allow)
	w.send(red, nil, "a.none", `{}`, id.Allow)
	w.send(red, nil, "a.full", many(63, "n"), id.Allow)
	w.send(red, nil, "a.many", many(64, "n"), id.Allow)
	w.send(red, nil, "a.many", `{"later":1}`, id.Allow)
	w.send(red, nil, "a.long", many(1, strings.Repeat("n", 64)), id.Allow)
	w.send(blue, nil, "a.first", `{"blue":1}`, id.Allow)
	for i := range 250 {
		w.send(red, nil, fmt.Sprintf("more.t%d", i), `{"m":1}`, id.Allow)
	}
	_, p := compile(t, `[{"rule_id":"r","tool":"a.**","decision":"allow"}]`)
	report, err := simulator.SimulateEvents(t.Context(), red, *p, simulate.Range{Last: simulate.MaxEvents})
	if err != nil {
		t.Fatal(err)
	}
	for tool, want := range map[id.Tool]string{"a.first": "[four one two]", "a.none": "[]"} {
		if got := fmt.Sprint(slices.Sorted(maps.Keys(report.Seen[tool]))); got != want {
			t.Errorf("%s: got %s, want %s", tool, got, want)
		}
	}
	if n := len(report.Seen["a.full"]); n != 64 {
		t.Errorf("got %d names, want 64", n)
	}
	for _, tool := range []id.Tool{"a.many", "a.long"} {
		if names, known := report.Seen[tool]; !known || names != nil {
			t.Errorf("%s: got %v, %v; want none", tool, names, known)
		}
	}
	if len(report.Seen) != 200 {
		t.Errorf("got %d tools, want 200", len(report.Seen))
	}
}
