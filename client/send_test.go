package client

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/fakeservice"
)

// Whatever fails in transit, the event is stored once, under one idempotency key.
func TestSendThroughFaults(t *testing.T) {
	type faults = []fakeservice.Fault
	for name, tc := range map[string]struct {
		faults faults
		want   string
		tries  int
	}{
		"none":                           {nil, Created, 1},
		"503 once":                       {faults{fakeservice.Unavailable}, Created, 2},
		"502 once":                       {faults{fakeservice.BadGateway}, Created, 2},
		"cut before it was taken":        {faults{fakeservice.Cut}, Created, 2},
		"answer lost":                    {faults{fakeservice.Lost}, Replayed, 2},
		"outcome unknown":                {faults{fakeservice.OutcomeTaken}, Replayed, 2},
		"503, answer lost, answer lost":  {faults{fakeservice.Unavailable, fakeservice.Lost, fakeservice.Lost}, Replayed, 4},
		"sent before, then answer lost":  {faults{fakeservice.Lost, fakeservice.Cut}, Replayed, 3},
		"503 asks for a second, granted": {faults{fakeservice.Later}, Created, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakeservice.Start(t, 2)
			o := s.Organization(1)
			c, waited := dial(t, s, o)
			s.Next(tc.faults...)
			r, err := c.Send(t.Context(), envelope(t, o, Event{EventID: "evt_1"}))
			if err != nil {
				t.Fatal(err)
			}
			if r.Status != tc.want || r.EventID != "evt_1" || o.Size() != 1 || s.Organization(0).Size() != 0 {
				t.Errorf("got %+v, sizes %d and %d", r, o.Size(), s.Organization(0).Size())
			}
			checkTries(t, s.Requests(), tc.tries)
			if len(*waited) != tc.tries-1 || slices.Contains(tc.faults, fakeservice.Later) && (*waited)[0] != time.Second {
				t.Errorf("waited %v", *waited)
			}
		})
	}
}

// checkTries checks that there are n requests, all with the same key and the default version.
func checkTries(t *testing.T, got []fakeservice.Request, n int) {
	t.Helper()
	if len(got) != n {
		t.Errorf("got %d requests, want %d", len(got), n)
	}
	for _, r := range got {
		if want := (fakeservice.Request{Method: "POST", Path: "/v1/ingest/events", IdempotencyKey: "evt_1", Version: "2026-05-18"}); r != want {
			t.Errorf("got %+v", r)
		}
	}
}

func TestSendResult(t *testing.T) {
	s := fakeservice.Start(t, 1)
	o := s.Organization(0)
	o.Rules = map[id.Tool]id.Decision{"bank.refund.send": id.Deny}
	c, _ := dial(t, s, o)
	r, err := c.Send(t.Context(), envelope(t, o, Event{Tool: "crm.user.get"}))
	if err != nil || r.Sequence != 1 || r.EventHash == (id.Hash{}) || r.ChainValid == nil || !*r.ChainValid || r.Tightened() {
		t.Errorf("got %+v, %v", r, err)
	}
	r, err = c.Send(t.Context(), envelope(t, o, Event{Tool: "bank.refund.send"}))
	if err != nil || r.Sequence != 2 || !r.Tightened() || r.Decision != id.Deny || r.PolicyID != "pol_1" || r.RuleID != "rule_bank.refund.send" {
		t.Errorf("got %+v, %v", r, err)
	}
}

// An event that the service refuses is sent once.
func TestSendRefused(t *testing.T) {
	s := fakeservice.Start(t, 2)
	mine, other := s.Organization(0), s.Organization(1)
	mine.Cap = 1
	good, _ := dial(t, s, mine)
	bad, err := New(Config{BaseURL: s.URL, Token: "apl_test_nobody"})
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := ParseSigner(Identity{mine.ID, mine.Agent, "key_2"}, mine.Seed)
	if err != nil {
		t.Fatal(err)
	}
	unknown, err := stranger.SignEvent(Event{ActionKind: "tool_call"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := good.Send(t.Context(), envelope(t, mine, Event{EventID: "evt_1"})); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name     string
		c        *Client
		envelope []byte
		want     Error
	}{
		{"unknown token", bad, envelope(t, mine, Event{}), Error{Status: 401, Message: "Invalid API key", RequestID: "req_1", Proved: true}},
		{"event of another organization", good, envelope(t, other, Event{}), Error{Status: 403, Message: "Organization mismatch for API key", RequestID: "req_1", Proved: true}},
		{"unknown key", good, unknown, Error{Status: 422, Message: "Unknown signing key", RequestID: "req_1", Proved: true}},
		{"another event of the same id", good, envelope(t, mine, Event{EventID: "evt_1"}), Error{Status: 422, Message: "event_id was used for another event", RequestID: "req_1", Proved: true}},
		{"cap", good, envelope(t, mine, Event{}), Error{Status: 429, Code: "plan_limit", Message: "Monthly event cap reached", RequestID: "req_1", Proved: true}},
	} {
		before := len(s.Requests())
		_, err := tc.c.Send(t.Context(), tc.envelope)
		var got *Error
		if !errors.As(err, &got) || *got != tc.want {
			t.Errorf("%s: got %v", tc.name, err)
		}
		if n := len(s.Requests()) - before; n != 1 {
			t.Errorf("%s: %d requests", tc.name, n)
		}
	}
}

func TestSendGivesUp(t *testing.T) {
	s := fakeservice.Start(t, 1)
	o := s.Organization(0)
	c, _ := dial(t, s, o)
	for name, tc := range map[string]struct {
		fault fakeservice.Fault
		tries int
		want  string
	}{
		"503 permanently": {fakeservice.Unavailable, 4, "gave up after 4 attempts: 503 Overloaded [overloaded] (request req_1)"},
		"500":             {fakeservice.Internal, 1, "500 Internal error (request req_1)"},
		"not the JSON":    {fakeservice.NotJSON, 1, "answer: "},
		"redirected":      {fakeservice.Redirected, 1, "307 Temporary Redirect"},
	} {
		before := len(s.Requests())
		s.Next(slices.Repeat([]fakeservice.Fault{tc.fault}, tc.tries)...)
		_, err := c.Send(t.Context(), envelope(t, o, Event{}))
		if err == nil || !strings.HasPrefix(err.Error(), "send event: "+tc.want) || strings.Contains(err.Error(), o.Token) {
			t.Errorf("%s: got %v", name, err)
		}
		if got := len(s.Requests()) - before; got != tc.tries {
			t.Errorf("%s: %d requests", name, got)
		}
	}
}

func TestSendStopsWithItsContext(t *testing.T) {
	s := fakeservice.Start(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	c, err := New(Config{BaseURL: s.URL, Token: s.Organization(0).Token, Retry: Retry{Sleep: func(ctx context.Context, _ time.Duration) error {
		cancel()
		return ctx.Err()
	}}})
	if err != nil {
		t.Fatal(err)
	}
	s.Next(fakeservice.Unavailable)
	_, err = c.Send(ctx, envelope(t, s.Organization(0), Event{}))
	var last *Error
	if !errors.Is(err, context.Canceled) || !errors.As(err, &last) || last.Status != 503 {
		t.Errorf("got %v", err)
	}
}

// A try that times out counts as lost, and the next has a timeout of its own.
func TestSendTimesOut(t *testing.T) {
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(slow.Close)
	t.Cleanup(func() { close(release) })
	waited := pauses{}
	reported := pauses{}
	notify := func(err error, wait time.Duration) { reported = append(reported, wait) }
	c, err := New(Config{BaseURL: slow.URL, Token: "t", Timeout: time.Millisecond, Retry: Retry{Attempts: 3, Notify: notify, Sleep: waited.pause}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Send(t.Context(), envelope(t, fakeservice.Start(t, 1).Organization(0), Event{}))
	if !errors.Is(err, context.DeadlineExceeded) || len(waited) != 2 || !slices.Equal(reported, waited) {
		t.Errorf("got %v after pauses %v, reported %v", err, waited, reported)
	}
}

func TestSendChecksFirst(t *testing.T) {
	s := fakeservice.Start(t, 1)
	c, _ := dial(t, s, s.Organization(0))
	if _, err := c.Send(t.Context(), []byte(`{"event_id":"evt_1"}`)); !fault.Is(err, fault.Invalid) {
		t.Errorf("unsigned: got %v", err)
	}
	anonymous, err := New(Config{BaseURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := anonymous.Send(t.Context(), envelope(t, s.Organization(0), Event{})); !errors.Is(err, ErrNoToken) {
		t.Errorf("no token: got %v", err)
	}
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestResultOf(t *testing.T) {
	for name, body := range map[string]string{
		"empty":                  ``,
		"page":                   `<html>`,
		"another event":          `{"event_id":"evt_2","status":"replayed"}`,
		"no status":              `{"event_id":"evt_1"}`,
		"unknown status":         `{"event_id":"evt_1","status":"queued"}`,
		"created without number": `{"event_id":"evt_1","status":"created","chain_valid":true}`,
		"created without chain":  `{"event_id":"evt_1","status":"created","sequence_num":1}`,
		"unknown decision":       `{"event_id":"evt_1","status":"created","sequence_num":1,"chain_valid":true,"policy_decision":"maybe"}`,
	} {
		if r, err := parseSendResult([]byte(body), "evt_1"); err == nil || isRetryable(err) || r != (Result{}) {
			t.Errorf("%s: got %+v, %v", name, r, err)
		}
	}
}

// FindEvent stores nothing, and is retried like any other request.
func TestFindEvent(t *testing.T) {
	s := fakeservice.Start(t, 2)
	o, other := s.Organization(0), s.Organization(1)
	c, _ := dial(t, s, o)
	sent := envelope(t, o, Event{EventID: "evt_1"})
	s.Next(fakeservice.Unavailable, fakeservice.Lost)
	if r, stored, err := c.FindEvent(t.Context(), sent); err != nil || stored || o.Size() != 0 {
		t.Errorf("not stored: got %+v, %v, %v, %d events", r, stored, err, o.Size())
	}
	if _, err := c.Send(t.Context(), sent); err != nil {
		t.Fatal(err)
	}
	if r, stored, err := c.FindEvent(t.Context(), sent); err != nil || !stored || r.Status != Replayed || r.EventID != "evt_1" || o.Size() != 1 {
		t.Errorf("stored: got %+v, %v, %v, %d events", r, stored, err, o.Size())
	}
	var refused *Error
	if _, stored, err := c.FindEvent(t.Context(), envelope(t, other, Event{EventID: "evt_1"})); !errors.As(err, &refused) || stored || refused.Status != http.StatusForbidden {
		t.Errorf("of another organization: got %v, %v", stored, err)
	}
	s.Next(fakeservice.NotJSON)
	if _, stored, err := c.FindEvent(t.Context(), sent); !errors.Is(err, ErrAnswer) || stored {
		t.Errorf("a page: got %v, %v", stored, err)
	}
	if _, stored, err := c.FindEvent(t.Context(), []byte("{}")); !fault.Is(err, fault.Invalid) || stored {
		t.Errorf("no event: got %v, %v", stored, err)
	}
	if n := other.Size(); n != 0 {
		t.Errorf("the other organization has %d events", n)
	}
}
