package people

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// All pages of a list are read, and a list without an end is refused.
func TestPages(t *testing.T) {
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		switch after := r.URL.Query().Get("after"); {
		case r.URL.Path == "/v1/console/policies":
			fmt.Fprint(w, `{"policies":[],"next":"more"}`)
		case after == "":
			fmt.Fprint(w, `{"agents":[{"agent_id":"a"},{"agent_id":"b"}],"next":"b"}`)
		default:
			fmt.Fprintf(w, `{"agents":[{"agent_id":"after-%s"}],"next":null}`, after)
		}
	}))
	defer server.Close()
	p := &planner{session: newSession(server.URL)}
	all, err := p.readAll(t.Context(), p.console("agents"))
	if err != nil || len(all.Agents) != 3 || all.Agents[2].AgentID != "after-b" {
		t.Errorf("got %+v, %v", all, err)
	}
	calls = 0
	if _, err := p.readAll(t.Context(), p.console("policies")); err == nil || !strings.Contains(err.Error(), "more than 100000 elements") || calls != 100 {
		t.Errorf("got %v after %d calls", err, calls)
	}
}

// A call is repeated if the service asks to wait for a bounded time, and not otherwise.
func TestPatience(t *testing.T) {
	for name, c := range map[string]struct {
		status    int
		header    string
		wantCalls int
		wantError string
	}{
		"asked to wait":   {429, "1", 2, ""},
		"for too long":    {429, "3600", 1, "429"},
		"without a time":  {429, "", 1, "429"},
		"another refusal": {409, "", 1, "409"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if calls++; calls > 1 {
					return
				}
				w.Header().Set("Retry-After", c.header)
				w.WriteHeader(c.status)
			}))
			defer server.Close()
			err := newSession(server.URL).patiently(t.Context(), http.MethodPost, server.URL, nil, nil)
			if calls != c.wantCalls || (err == nil) != (c.wantError == "") || err != nil && !strings.Contains(err.Error(), c.wantError) {
				t.Errorf("got %v after %d calls, want %q after %d", err, calls, c.wantError, c.wantCalls)
			}
		})
	}
}

// The plan shows where a receiver is, never the rest of its address.
func TestHostOnly(t *testing.T) {
	for in, want := range map[string]string{
		"https://hooks.example/services/T0/secret?token=x": "https://hooks.example",
		"https://ann:secret@hooks.example":                 "https://hooks.example",
		"%zz":                                              "?",
	} {
		if got := hostOnly(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
