package console_test

import (
	"bufio"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// counted returns the counted requests for routes of pages and of the API.
func counted(t *testing.T, address string) (all int, of map[string]int) {
	t.Helper()
	answer, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	of = map[string]int{}
	line := regexp.MustCompile(`^agentledger_http_request_seconds_count\{.*route="([^"]*)".*\} (\d+)$`)
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if found := line.FindStringSubmatch(lines.Text()); found != nil {
			n, _ := strconv.Atoi(found[2])
			of[found[1]] += n
			all += n
		}
	}
	return all, of
}

// requestLines returns the lines of requests in a log.
func requestLines(log string) (lines []string) {
	for line := range strings.Lines(log) {
		if strings.Contains(line, "msg=request") {
			lines = append(lines, line)
		}
	}
	return lines
}

// A page or a form is one request in the metrics and one line in the log with the request ID of the response. If a form
// is rejected, the line has the reason.
func TestOneRequestPerPage(t *testing.T) {
	t.Parallel()
	metrics := servicetest.FreeAddress(t)
	s := servicetest.New(t, "--metrics-listen", metrics)
	s.Red.Send("e1", nil)
	ann := s.SignIn(s.Red.Owner)
	for !strings.Contains(s.Log(), "route=/signin ") { // the sign-in is counted and logged after its response was sent
		counted(t, metrics)
	}
	idOf := regexp.MustCompile(`request_id=(\S+)`)
	check := func(path, route, text string, request func() servicetest.Answer) {
		all, of := counted(t, metrics)
		logged := len(s.Log())
		got := request()
		after, ofAfter := counted(t, metrics)
		for tries := 0; after == all && tries < 1000; tries++ { // a request is counted after its response was sent
			after, ofAfter = counted(t, metrics)
		}
		if after != all+1 || ofAfter[route] != of[route]+1 {
			t.Errorf("%s: got %d requests, %d of the page; want 1", path, after-all, ofAfter[route]-of[route])
		}
		lines := requestLines(s.Log()[logged:])
		for tries := 0; len(lines) == 0 && tries < 1000; tries++ { // a request is logged after it was counted
			counted(t, metrics)
			lines = requestLines(s.Log()[logged:])
		}
		if len(lines) != 1 || !strings.Contains(lines[0], "route="+route+" ") || !strings.Contains(lines[0], text) {
			t.Fatalf("%s: got %q, want one line with %q", path, lines, text)
		}
		if id := idOf.FindStringSubmatch(lines[0])[1]; id != got.Header.Get("X-Request-Id") {
			t.Errorf("%s: got request %s, but the log has %s", path, got.Header.Get("X-Request-Id"), id)
		}
	}
	agent := "/console/agents/" + string(s.Red.Agent.AgentID)
	for path, route := range map[string]string{
		"/console": "", "/console/start": "", "/console/activity": "", "/console/activity/views": "", "/console/acts/e1": "/console/acts/{act}", "/console/events": "", "/console/events/e1": "/console/events/{event}", "/console/stats": "",
		"/console/traces": "", "/console/runs": "", "/console/audit": "", "/console/erasures": "", "/console/policies": "",
		"/console/approvals": "", "/console/approvals/none": "/console/approvals/{approval}",
		"/console/agents": "", agent: "/console/agents/{agent}",
		"/console/ingest-keys": "", "/console/members": "", "/console/webhooks": "", "/console/settings": "",
		"/console/settings/tokens": "", "/console/settings/witnesses": "", "/console/settings/columns": "", "/console/settings/tool-keys": "", "/console/settings/stream-export": "",
		"/account": "", "/account/slack": "", "/account/sessions": "", "/account/factors": "", "/console/events/none": "/console/events/{event}",
	} {
		if route == "" {
			route = path
		}
		check(path, route, "", func() servicetest.Answer { return ann.Get(path) })
	}
	for _, form := range []struct {
		path, route, text string
		fields            []string
	}{
		{agent, "/console/agents/{agent}", "status=303", []string{"do", "change", "display_name", "Shop", "active", "on"}},
		{"/console/agents", "", "status=200", []string{"do", "create", "display_name", "Other"}},
		{"/console/settings", "", "status=422", []string{"do", "retain", "retention_days", "-1"}},
		{"/console/members", "", "refused=", []string{"do", "invite", "email", "none", "role", "member"}},
		{"/console/members", "", "status=200", []string{"do", "invite", "email", "new@red.example", "role", "member"}},
		{"/account", "", "status=303", []string{"do", "profile", "display_name", "Ann"}},
		{"/account/factors", "", "status=404", []string{"do", "remove", "passkey_id", "none"}},
		{"/signin", "", "status=401", []string{"do", "sign-in", "email", s.Red.Owner, "password", "wrong"}},
	} {
		if form.route == "" {
			form.route = form.path
		}
		check("a form of "+form.path, form.route, form.text, func() servicetest.Answer {
			return ann.Post(form.path, form.fields...)
		})
	}
}
