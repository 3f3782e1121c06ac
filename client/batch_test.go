package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/fakeservice"
)

// envelopes returns n signed events evt_1 to evt_n of o.
func envelopes(t testing.TB, o *fakeservice.Organization, n int) [][]byte {
	t.Helper()
	list := make([][]byte, n)
	for i := range list {
		list[i] = envelope(t, o, Event{EventID: id.Event(fmt.Sprint("evt_", i+1))})
	}
	return list
}

// summary formats each outcome as "status event_id" or as its error.
func summary(outcomes []Outcome) []string {
	out := make([]string, len(outcomes))
	for i, o := range outcomes {
		if out[i] = string(o.Result.Status + " " + string(o.Result.EventID)); o.Err != nil {
			out[i] = o.Err.Error()
		}
	}
	return out
}

// checkStored checks that the log holds exactly evt_1 to evt_n, in this order.
func checkStored(t *testing.T, o *fakeservice.Organization, n int) {
	t.Helper()
	if o.Size() != n {
		t.Errorf("size %d, want %d", o.Size(), n)
	}
	for i := range o.Size() {
		if want := fmt.Sprintf(`"event_id":"evt_%d"`, i+1); !strings.Contains(string(o.Envelope(i)), want) {
			t.Errorf("entry %d is not %s", i, want)
		}
	}
}

// Whatever fails in transit, each event is stored once, and in order.
func TestSendBatchThroughFaults(t *testing.T) {
	type faults = []fakeservice.Fault
	all := func(status string) []string { return []string{status + " evt_1", status + " evt_2", status + " evt_3"} }
	for name, tc := range map[string]struct {
		faults, lines faults
		want          []string
		tries         int
	}{
		"none":                     {nil, nil, all(Created), 1},
		"503 once":                 {faults{fakeservice.Unavailable}, nil, all(Created), 2},
		"cut before it was taken":  {faults{fakeservice.Cut}, nil, all(Created), 2},
		"answer lost":              {faults{fakeservice.Lost}, nil, all(Replayed), 2},
		"answer lost twice":        {faults{fakeservice.Lost, fakeservice.BadGateway, fakeservice.Lost}, nil, all(Replayed), 4},
		"outcome of all unknown":   {faults{fakeservice.OutcomeTaken}, nil, all(Replayed), 2},
		"last lines not taken":     {nil, faults{fakeservice.None, fakeservice.Unavailable, fakeservice.Unavailable}, all(Created), 2},
		"outcome of one unknown":   {nil, faults{fakeservice.None, fakeservice.OutcomeTaken}, []string{"created evt_1", "replayed evt_2", "created evt_3"}, 2},
		"one not taken, then lost": {faults{fakeservice.None, fakeservice.Lost}, faults{fakeservice.None, fakeservice.None, fakeservice.Unavailable}, []string{"created evt_1", "created evt_2", "replayed evt_3"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakeservice.Start(t, 2)
			o := s.Organization(1)
			c, waited := dial(t, s, o)
			s.Next(tc.faults...)
			s.NextLines(tc.lines...)
			if got := summary(c.SendBatch(t.Context(), envelopes(t, o, 3))); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			checkStored(t, o, 3)
			if got := len(s.Requests()); got != tc.tries || len(*waited) != tc.tries-1 || s.Organization(0).Size() != 0 {
				t.Errorf("got %d requests and %d pauses, want %d requests", got, len(*waited), tc.tries)
			}
			want := fakeservice.Request{Method: "POST", Path: "/v1/ingest/events/batch", Version: "2026-05-18"}
			for _, r := range s.Requests() {
				if r != want {
					t.Errorf("got %+v", r)
				}
			}
		})
	}
}

// An error in one envelope affects only the outcome of that envelope.
func TestSendBatchRefused(t *testing.T) {
	s := fakeservice.Start(t, 2)
	o := s.Organization(0)
	o.Cap = 3
	o.Rules = map[id.Tool]id.Decision{"bank.refund.send": id.Deny}
	c, _ := dial(t, s, o)
	batch := slices.Concat(envelopes(t, o, 1), [][]byte{
		[]byte(`{"event_id":"evt_1"}`),
		envelope(t, s.Organization(1), Event{}),
		envelope(t, o, Event{EventID: "evt_1"}),
		envelope(t, o, Event{EventID: "evt_2", Tool: "bank.refund.send"}),
		[]byte(strings.Replace(string(envelope(t, o, Event{EventID: "evt_3"})), ",", "\n,\n", 1)),
		envelope(t, o, Event{EventID: "evt_4", Payload: map[string]any{"text": strings.Repeat("x", 256<<10)}}),
		envelope(t, o, Event{EventID: "evt_5", Payload: map[string]any{"text": strings.Repeat("x", 8<<20)}}),
		envelope(t, o, Event{EventID: "evt_6"}),
	})
	s.NextLines(slices.Concat(make([]fakeservice.Fault, 6), []fakeservice.Fault{fakeservice.Internal})...)
	got := c.SendBatch(t.Context(), batch)
	want := []string{
		"created evt_1",
		"send event: Missing organization_id",
		"send event: 403 Organization mismatch for API key (request req_1)",
		"send event: 422 event_id was used for another event (request req_1)",
		"created evt_2",
		"created evt_3",
		"send event: 413 The envelope is larger than 262144 bytes (request req_1)",
		"send event: The envelope is larger than 8388607 bytes",
		"send event: 500 Internal error (request req_1)",
	}
	if !slices.Equal(summary(got), want) {
		t.Errorf("got %q, want %q", summary(got), want)
	}
	if r := got[4].Result; r.Sequence != 2 || !r.Tightened() || r.Decision != id.Deny || r.ChainValid == nil || r.EventHash == (id.Hash{}) {
		t.Errorf("got %+v", r)
	}
	if !fault.Is(got[1].Err, fault.Invalid) || !fault.Is(got[7].Err, fault.TooLarge) || len(s.Requests()) != 1 {
		t.Errorf("got %v, %v, %d requests", got[1].Err, got[7].Err, len(s.Requests()))
	}
	over := c.SendBatch(t.Context(), [][]byte{envelope(t, o, Event{})})
	var limit *Error
	if !errors.As(over[0].Err, &limit) || *limit != (Error{Status: 429, Code: "plan_limit", Message: "Monthly event cap reached", RequestID: "req_1", Proved: true}) {
		t.Errorf("got %v", over[0].Err)
	}
	checkStored(t, o, 3)
}

// sizes starts a service that records how many lines and bytes each batch has, and accepts none of them.
func sizes(t *testing.T) (c *Client, lines, bytes *[]int) {
	t.Helper()
	lines, bytes = new([]int), new([]int)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		n := strings.Count(string(body), "\n")
		*lines, *bytes = append(*lines, n), append(*bytes, len(body))
		_, _ = io.WriteString(w, strings.Repeat(`{"status_code":422,"error":"No"}`+"\n", n))
	}))
	t.Cleanup(server.Close)
	c, err := New(Config{BaseURL: server.URL, Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	return c, lines, bytes
}

func TestSendBatchSplits(t *testing.T) {
	o := fakeservice.Start(t, 1).Organization(0)
	small := envelope(t, o, Event{})
	large := envelope(t, o, Event{Payload: map[string]any{"text": strings.Repeat("x", 3<<20)}})
	for name, tc := range map[string]struct {
		batch [][]byte
		lines []int
	}{
		"nothing":         {nil, nil},
		"nothing valid":   {[][]byte{nil}, nil},
		"one":             {[][]byte{small}, []int{1}},
		"1000":            {slices.Repeat([][]byte{small}, 1000), []int{1000}},
		"1001":            {slices.Repeat([][]byte{small}, 1001), []int{1000, 1}},
		"2500":            {slices.Repeat([][]byte{small}, 2500), []int{1000, 1000, 500}},
		"8 MiB":           {slices.Repeat([][]byte{large}, 5), []int{2, 2, 1}},
		"8 MiB and a bit": {[][]byte{large, large, small, large, small}, []int{3, 2}},
	} {
		c, lines, bytes := sizes(t)
		got := c.SendBatch(t.Context(), tc.batch)
		if !slices.Equal(*lines, tc.lines) || len(got) != len(tc.batch) {
			t.Errorf("%s: got %v, want %v", name, *lines, tc.lines)
		}
		for i, o := range got {
			if o.Err == nil {
				t.Errorf("%s: no outcome of %d", name, i)
			}
		}
		if len(*bytes) > 0 && slices.Max(*bytes) > 8<<20 {
			t.Errorf("%s: got %v bytes", name, *bytes)
		}
	}
}

// After a request that failed as a whole no other is sent; the outcomes reported before it stand.
func TestSendBatchStops(t *testing.T) {
	s := fakeservice.Start(t, 1)
	o := s.Organization(0)
	batch := envelopes(t, o, 1001)
	for name, tc := range map[string]struct {
		faults, lines []fakeservice.Fault
		tries         int
		want          string
	}{
		"500":             {[]fakeservice.Fault{fakeservice.Internal}, nil, 1, "send event: 500 Internal error (request req_1)"},
		"503 permanently": {slices.Repeat([]fakeservice.Fault{fakeservice.Unavailable}, 4), nil, 4, "send event: gave up after 4 attempts: 503 Overloaded [overloaded] (request req_1)"},
		"not the JSON":    {[]fakeservice.Fault{fakeservice.NotJSON}, nil, 1, "send event: answer: 1 results for 1000 lines"},
		"elsewhere":       {[]fakeservice.Fault{fakeservice.Redirected}, nil, 1, "send event: 307 Temporary Redirect"},
		"no line":         {nil, slices.Repeat([]fakeservice.Fault{fakeservice.Unavailable}, 4000), 4, "send event: gave up after 4 attempts: 503 Overloaded [overloaded] (request req_1)"},
	} {
		c, _ := dial(t, s, o)
		before := len(s.Requests())
		s.Next(tc.faults...)
		s.NextLines(tc.lines...)
		for i, got := range summary(c.SendBatch(t.Context(), batch)) {
			if got != tc.want {
				t.Fatalf("%s: event %d: got %q, want %q", name, i, got, tc.want)
			}
		}
		if got := len(s.Requests()) - before; got != tc.tries || o.Size() != 0 {
			t.Errorf("%s: %d requests, size %d", name, got, o.Size())
		}
	}
	c, _ := dial(t, s, o)
	s.Next(fakeservice.None, fakeservice.Internal)
	got := summary(c.SendBatch(t.Context(), batch))
	if got[0] != "created evt_1" || got[999] != "created evt_1000" || got[1000] != "send event: 500 Internal error (request req_1)" {
		t.Errorf("got %q, %q, %q", got[0], got[999], got[1000])
	}
}

func TestSendBatchStopsWithItsContext(t *testing.T) {
	s := fakeservice.Start(t, 1)
	o := s.Organization(0)
	ctx, cancel := context.WithCancel(t.Context())
	c, err := New(Config{BaseURL: s.URL, Token: o.Token, Retry: Retry{Sleep: func(ctx context.Context, _ time.Duration) error {
		cancel()
		return ctx.Err()
	}}})
	if err != nil {
		t.Fatal(err)
	}
	s.NextLines(fakeservice.None, fakeservice.Unavailable)
	got := c.SendBatch(ctx, envelopes(t, o, 3))
	var last *Error
	if !errors.Is(got[1].Err, context.Canceled) || !errors.As(got[1].Err, &last) || last.Code != "overloaded" {
		t.Errorf("got %v", got[1].Err)
	}
	if got[0].Err != nil || got[2].Err != nil || o.Size() != 2 {
		t.Errorf("got %q, size %d", summary(got), o.Size())
	}
}

func TestReadLines(t *testing.T) {
	for name, tc := range map[string]struct {
		answer string
		open   int
		err    bool
	}{
		"no line":       {"", 2, true},
		"too few":       {`{"status_code":200,"event_id":"a","status":"replayed"}` + "\n", 2, true},
		"too many":      {"{}\n{}\n{}\n", 2, true},
		"not JSON":      {"<html>\n<p>\n", 0, false},
		"another event": {strings.Repeat(`{"status_code":200,"event_id":"c","status":"replayed"}`+"\n", 2), 0, false},
		"no status":     {strings.Repeat(`{"event_id":"a","status":"replayed"}`+"\n", 2), 0, false},
		"no text":       {strings.Repeat(`{"status_code":503}`+"\n", 2), 2, true},
		"without LF":    {`{"status_code":422}` + "\n" + `{"status_code":503,"error":"Later"}`, 1, true},
	} {
		events := []*event.Envelope{{EventID: "a"}, {EventID: "b"}}
		outcomes := make([]Outcome, 2)
		open := []batchLine{{event: events[0], outcome: &outcomes[0]}, {event: events[1], outcome: &outcomes[1]}}
		answers, err := readBatchAnswer(received{body: []byte(tc.answer)}, events)
		if err == nil {
			open, err = settle(open, answers)
		}
		if len(open) != tc.open || (err != nil) != tc.err {
			t.Errorf("%s: got %d lines open, %v", name, len(open), err)
		}
		for i, o := range outcomes {
			if isOpen := o.Err == nil; isOpen != (i >= 2-tc.open) || o.Result != (Result{}) {
				t.Errorf("%s: line %d: got %+v", name, i, o)
			}
		}
	}
}
