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

// counted returns the requests that a service has counted for routes of people and of the interface.
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

// A page is one request in the metrics and one line in the log, and the line has the request id of the answer.
func TestOneRequestPerPage(t *testing.T) {
	t.Parallel()
	metrics := servicetest.FreeAddress(t)
	s := servicetest.New(t, "--metrics-listen", metrics)
	s.Red.Send("e1", nil)
	ann := s.SignIn(s.Red.Owner)
	for !strings.Contains(s.Log(), "route=/signin ") { // the sign-in is counted and logged after its answer was sent
		counted(t, metrics)
	}
	idOf := regexp.MustCompile(`request_id=(\S+)`)
	for path, route := range map[string]string{
		"/console": "", "/console/events": "", "/console/events/e1": "/console/events/{event}", "/console/stats": "",
		"/console/traces": "", "/console/runs": "", "/console/audit": "", "/console/erasures": "", "/console/policies": "",
		"/console/approvals": "", "/console/approvals/none": "/console/approvals/{approval}",
		"/console/agents": "", "/console/agents/" + string(s.Red.Agent.AgentID): "/console/agents/{agent}",
		"/console/ingest-keys": "", "/console/members": "", "/console/webhooks": "", "/console/settings": "",
		"/console/settings/tokens": "", "/console/settings/witnesses": "", "/console/settings/stream-export": "",
		"/account": "", "/account/sessions": "", "/account/factors": "", "/console/events/none": "/console/events/{event}",
	} {
		if route == "" {
			route = path
		}
		all, of := counted(t, metrics)
		logged := len(s.Log())
		got := ann.Get(path)
		after, ofAfter := counted(t, metrics)
		for tries := 0; after == all && tries < 1000; tries++ { // a request is counted after its answer was sent
			after, ofAfter = counted(t, metrics)
		}
		if after != all+1 || ofAfter[route] != of[route]+1 {
			t.Errorf("%s: got %d requests, %d of the page; want 1", path, after-all, ofAfter[route]-of[route])
		}
		lines := requestLines(s.Log()[logged:])
		for tries := 0; len(lines) == 0 && tries < 1000; tries++ { // and logged after it was counted
			counted(t, metrics)
			lines = requestLines(s.Log()[logged:])
		}
		if len(lines) != 1 || !strings.Contains(lines[0], "route="+route+" ") {
			t.Fatalf("%s: got %q, want one line", path, lines)
		}
		if id := idOf.FindStringSubmatch(lines[0])[1]; id != got.Header.Get("X-Request-Id") {
			t.Errorf("%s: got request %s, the log has %s", path, got.Header.Get("X-Request-Id"), id)
		}
	}
}
