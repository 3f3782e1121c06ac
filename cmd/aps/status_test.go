package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/fakeservice"
)

// In every command, error texts of a service can't reverse or clear a line of the terminal.
func TestServiceErrorsOnTerminal(t *testing.T) {
	hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte("{\"error\":\"no\u202egnihton \\u001b[2J\",\"code\":\"x\u202e\",\"request_id\":\"r\"}"))
	}))
	t.Cleanup(hostile.Close)
	s := fakeservice.Start(t, 1)
	o := s.Organization(0)
	state := filepath.Join(t.TempDir(), "state")
	for name, args := range map[string][]string{
		"send":     with("send", []string{"--url", hostile.URL, "--token", o.Token}, as(t, o)),
		"evaluate": with("evaluate", []string{"--url", hostile.URL, "--token", o.Token, "--org", o.ID.String(), "--agent", string(o.Agent), "--tool", "crm.user.get"}),
		"monitor":  {"monitor", "--once", "--url", hostile.URL + "/o/" + o.ID.String(), "--key", o.LogKey().String(), "--state", state},
		"did get":  {"did", "get", "--url", hostile.URL, "did:web:x.example"},
		"verify":   {"verify", hostile.URL + "/v1/public/orgs/acme/verify/x"},
	} {
		got := aps(t, twoEvents, args...)
		if strings.ContainsAny(got.out+got.report, "\u202e\x1b") || !strings.Contains(got.report, "?") {
			t.Errorf("%s: got %q, %q", name, got.out, got.report)
		}
		if got.status == 0 {
			t.Errorf("%s: got status 0", name)
		}
	}
}
