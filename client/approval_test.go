package client

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
)

// However short a request's timeout is, a poll ends before it: a timeout would look like an unreachable service.
func TestPollsFitTheirTimeout(t *testing.T) {
	for timeout, want := range map[time.Duration]string{0: "25", 30 * time.Second: "25", time.Minute: "25", 12 * time.Second: "7", 4 * time.Second: "2", time.Second: ""} {
		var waits []string
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			waits = append(waits, r.URL.Query().Get("wait"))
			fmt.Fprintf(w, `{"approval_id":"apr_1","status":%q,"action_digest":%q,"expires_at":"2026-11-21T12:00:00.000Z"}`,
				[]string{"pending", "approved"}[len(waits)-1], id.Hash{})
		}))
		c, err := New(Config{BaseURL: service.URL, Token: "t", Timeout: timeout})
		if err != nil {
			t.Fatal(err)
		}
		if a, err := c.AwaitApproval(t.Context(), "apr_1"); err != nil || a.Status != ApprovalApproved || !slices.Equal(waits, []string{want, want}) {
			t.Errorf("%v: got %s, %v, waits of %q s, want %q", timeout, a.Status, err, waits, want)
		}
		service.Close()
	}
}

// When the organization has no polls left that may wait, the client polls without waiting and pauses between polls.
func TestCrowdedPolls(t *testing.T) {
	waits := 0
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("wait") {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"error":"Too many polls wait","code":"overloaded"}`)
			return
		}
		waits++
		fmt.Fprintf(w, `{"approval_id":"apr_1","status":%q,"action_digest":%q,"expires_at":"2026-11-21T12:00:00.000Z"}`,
			[]string{"pending", "approved"}[waits-1], id.Hash{})
	}))
	defer service.Close()
	var rests []time.Duration
	rest := func(_ context.Context, d time.Duration) error { rests = append(rests, d); return nil }
	c, err := New(Config{BaseURL: service.URL, Token: "t", Retry: Retry{Attempts: 2, Sleep: rest}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.AwaitApproval(t.Context(), "apr_1")
	if want := []time.Duration{7 * time.Second, overloadedPause, 7 * time.Second}; err != nil || a.Status != ApprovalApproved || !slices.Equal(rests, want) {
		t.Errorf("got %s, %v, rests of %v, want %v", a.Status, err, rests, want)
	}
}

// The error for an approval that was not granted gives the reviewers' reason, in one line without control characters.
func TestDenial(t *testing.T) {
	for name, tt := range map[string]struct {
		a    Approval
		want string
	}{
		"no reason": {Approval{Status: ApprovalExpired}, "the action is not allowed: the approval is expired"},
		"a code":    {Approval{Status: ApprovalDenied, ReasonCode: "over_budget"}, "the action is not allowed: the approval is denied [over_budget]"},
		"both":      {Approval{Status: ApprovalDenied, ReasonCode: "over_budget", Comment: "ask\nAnn\x1b[2J"}, "the action is not allowed: the approval is denied [over_budget]: ask?Ann?[2J"},
		"a comment": {Approval{Status: ApprovalRevoked, Comment: "no more"}, "the action is not allowed: the approval is revoked: no more"},
	} {
		denied := tt.a.Denial(Decision{RuleID: "r"})
		if denied.Error() != tt.want || denied.Approval != tt.a || denied.Decision.RuleID != "r" {
			t.Errorf("%s: got %v %+v, want %s", name, denied, denied.Approval, tt.want)
		}
	}
}
