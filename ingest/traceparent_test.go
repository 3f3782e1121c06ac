package ingest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

const (
	someParent  = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	otherParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
)

// The record has the traceparent of the request, unless the envelope has one. No header fails a request, and no other organization gets it.
func TestTraceparent(t *testing.T) {
	w := newWorld(t)
	for i, tc := range []struct {
		name    string
		headers []string
		change  fields
		want    string
	}{
		{"no header", nil, nil, ""},
		{"a header", []string{"Traceparent: " + someParent}, nil, someParent},
		{"in lower case, as it is sent", []string{"traceparent: " + someParent}, nil, someParent},
		{"with tracestate", []string{"Traceparent: " + someParent, "Tracestate: congo=t61rcWkgMzE"}, nil, someParent},
		{"a later version", []string{"Traceparent: 01" + someParent[2:] + "-more"}, nil, someParent},
		{"twice", []string{"Traceparent: " + someParent, "Traceparent: " + someParent}, nil, ""},
		{"malformed", []string{"Traceparent: 00-x"}, nil, ""},
		{"zero", []string{"Traceparent: 00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01"}, nil, ""},
		{"long", []string{"Traceparent: 01" + someParent[2:] + "-" + strings.Repeat("x", 4000)}, nil, ""},
		{"signed", []string{"Traceparent: " + someParent}, fields{"traceparent": otherParent}, ""},
		{"signed, malformed", []string{"Traceparent: " + someParent}, fields{"traceparent": "00-x"}, someParent},
		{"signed, no text", []string{"Traceparent: " + someParent}, fields{"traceparent": 7}, someParent},
	} {
		w.mustCreate(&w.red, fmt.Sprintf("evt-%d", i), tc.change, tc.headers...)
		w.mustCreate(&w.blue, fmt.Sprintf("evt-%d", i), nil)
		if got := w.record(&w.red).Traceparent.String(); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
		if got := w.record(&w.blue).Traceparent.String(); got != "" {
			t.Errorf("%s: the other organization: got %q", tc.name, got)
		}
	}
}

// A repeated request with another header is the same event. A batch has events of many callers, so its header is not recorded.
func TestTraceparentOfRepeatedAndBatchedEvents(t *testing.T) {
	w := newWorld(t)
	one := w.envelope(&w.red, "evt", nil)
	w.expect(w.send(&w.red, one, "Traceparent: "+someParent), http.StatusCreated, "")
	w.expectReplayed(w.send(&w.red, one, "Traceparent: "+otherParent), "evt")
	if got := w.record(&w.red).Traceparent.String(); got != someParent {
		t.Errorf("got %q, want %q", got, someParent)
	}
	a := w.post(batchPath, w.red.token, w.envelope(&w.red, "line", nil), "Traceparent: "+someParent, "Content-Type: application/x-ndjson")
	if got := w.record(&w.red); a.Code != http.StatusOK || got.EventID != "line" || got.Traceparent.String() != "" {
		t.Errorf("a batch: got %d, %s %q, want line without one", a.Code, got.EventID, got.Traceparent)
	}
}

// The service signs the events of a run, so their trace is that of the request at its start, and each step has its own caller.
func TestTraceparentOfRuns(t *testing.T) {
	w := newWorld(t)
	for body, want := range map[string]string{
		runBody:                             "4bf92f3577b34da6a3ce929d0e0e4736",
		with(runBody, `"trace_id":"trc-1"`): "trc-1",
	} {
		a := w.post(prefixes[0]+"/runs", w.red.token, body, "Traceparent: "+someParent)
		if got := a.fields["trace_id"]; got != want {
			t.Errorf("%s: got trace %v, want %s", body, got, want)
		}
		run := prefixes[0] + "/runs/" + a.fields["run_id"].(string)
		for range 2 { // the second one is a repetition from another caller
			w.post(run+"/steps", w.red.token, stepBody, "Traceparent: "+otherParent)
			if got := w.record(&w.red).Traceparent.String(); got != otherParent {
				t.Errorf("%s: step: got %q, want %q", body, got, otherParent)
			}
		}
		s := w.State(t, w.red.tenant)
		e, err := w.Ledgers.Event(t.Context(), s, s.Size()-1, storage.FieldRecord|storage.FieldEnvelope)
		if err != nil || e.Trace != id.Trace(want) {
			t.Errorf("%s: step: got trace %s, %v", body, e.Trace, err)
		}
	}
}

// Equal questions of two callers are about one approval: a question's trace is part of what makes it another one, and the header is not.
func TestTraceparentOfApprovals(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "pol-1", rules)
	question := w.question(&w.red, refund)
	one := w.post(approvalsPath, w.red.token, question, "Traceparent: "+someParent)
	again := w.post(approvalsPath, w.red.token, question, "Traceparent: "+otherParent)
	if one.Code != http.StatusCreated || again.Code != http.StatusOK || one.fields["approval_id"] != again.fields["approval_id"] {
		t.Errorf("got %d %s and %d %s, want one approval", one.Code, one.Body, again.Code, again.Body)
	}
}
