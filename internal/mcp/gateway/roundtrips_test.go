package gateway

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
)

const (
	inputRequired = `{"resultType":"input_required","inputRequests":{"c":{"method":"elicitation/create","params":{"message":"really?"}}},"requestState":"s1"}`
	complete      = `{"resultType":"complete","content":[{"type":"text","text":"refunded"}]}`
)

// startRoundTrips returns a client of 2026-07-28 in front of a server that needs input.
func startRoundTrips(t *testing.T, o *office, change func(*Config)) (*rawServer, *rawCaller) {
	t.Helper()
	server := newRawServer()
	server.results["tools/call"] = inputRequired
	g, _ := startRaw(t, o, map[string]*rawServer{"files": server}, change)
	startSending(t, g)
	return server, connectRaw(t, g)
}

// stateless returns a tool call of 2026-07-28 with further params.
func stateless(id, tool, arguments, more string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + more +
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`
}

const yes = `,"requestState":"s1","inputResponses":{"c":{"action":"accept"}}`

// The round trips of a call are one call: one intent, one approval, one result. Questions and answers are members of the
// result.
func TestRoundTripsAreOneCall(t *testing.T) {
	for name, output := range map[string]bool{"digests": false, "whole": true} {
		o := newOffice(t)
		o.decisions["mcp.files.refund"] = "allow_with_obligation"
		server, c := startRoundTrips(t, o, func(c *Config) {
			c.Rules = []Rule{{Tools: "mcp.files.*", Output: output}}
		})
		o.set(func() {
			o.votes = map[string]string{"apr_1": "approved", "apr_2": "denied", "apr_3": "denied", "apr_4": "denied"}
		})
		if got := c.ask(stateless("2", "refund", `{"amount":5}`, "")); got != `{"jsonrpc":"2.0","id":2,"result":`+inputRequired+`}` {
			t.Fatalf("%s: got %s", name, got)
		}
		if got := c.ask(stateless("3", "refund", `{"amount":6}`, yes)); !strings.Contains(got, `"approval_id":"apr_2"`) {
			t.Errorf("%s: other arguments: got %s", name, got)
		}
		if got := c.ask(stateless("4", "refund", `{"amount":5}`, strings.Replace(yes, "s1", "s2", 1))); !strings.Contains(got, `"approval_id":"apr_3"`) {
			t.Errorf("%s: another state: got %s", name, got)
		}
		server.answer("tools/call", complete)
		if got := c.ask(stateless("5", "refund", `{"amount":5}`, yes)); got != `{"jsonrpc":"2.0","id":5,"result":`+complete+`}` {
			t.Errorf("%s: got %s", name, got)
		}
		if got := c.ask(stateless("6", "refund", `{"amount":5}`, yes)); !strings.Contains(got, `"approval_id":"apr_4"`) {
			t.Errorf("%s: the answers again: got %s", name, got)
		}
		denied, refund := "result mcp.files.refund denied", "intent mcp.files.refund"
		wantEvents := []string{refund, refund, refund, refund, denied, denied, denied, "result mcp.files.refund ok"}
		if got := o.toldResults(organizations[0], 4); !slices.Equal(got, wantEvents) {
			t.Fatalf("%s: got %v", name, got)
		}
		trips := o.tripsOf(organizations[0])
		if len(trips) != 1 {
			t.Fatalf("%s: got %d round trips", name, len(trips))
		}
		want := `{"c":{"action":"accept"}}`
		if !output {
			want = `"sha256:` + digestOf(want) + `"`
		}
		if got := string(trips[0].Responses); got != want || trips[0].State != digestOf("s1") || trips[0].Requests == nil {
			t.Errorf("%s: got %+v", name, trips[0])
		}
	}
}

// tripsOf returns the round trips of the only result that is ok.
func (o *office) tripsOf(org id.Organization) []roundTrip {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.events[org] {
		var p struct {
			Status string      `json:"status"`
			Trips  []roundTrip `json:"round_trips"`
		}
		if json.Unmarshal(e.Payload, &p) == nil && p.Status == "ok" {
			return p.Trips
		}
	}
	return nil
}

// A call whose input never comes has an unknown end. It is no result that the server has asked.
func TestRoundTripsWithoutEnd(t *testing.T) {
	o := newOffice(t)
	server := newRawServer()
	server.results["tools/call"] = inputRequired
	g, _ := startRaw(t, o, map[string]*rawServer{"files": server}, nil)
	startSending(t, g)
	c := connectRaw(t, g)
	c.ask(stateless("1", "refund", `{}`, ""))
	if got := o.told(organizations[0]); !slices.Equal(got, []string{"intent mcp.files.refund"}) {
		t.Errorf("before the end: %v", got)
	}
	c.in.Close()
	want := []string{"intent mcp.files.refund", "result mcp.files.refund unknown"}
	if got := o.toldResults(organizations[0], 1); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// A server that never stops asking ends its call, because the result names each question.
func TestTooManyRoundTrips(t *testing.T) {
	o := newOffice(t)
	_, c := startRoundTrips(t, o, nil)
	got := c.ask(stateless("0", "refund", `{}`, ""))
	for i := 1; i <= maxRoundTrips; i++ {
		if !strings.Contains(got, "input_required") {
			t.Fatalf("after %d answers: got %s", i-1, got)
		}
		got = c.ask(stateless(strconv.Itoa(i), "refund", `{}`, yes))
	}
	if !strings.Contains(got, `"isError":true`) {
		t.Errorf("got %s", got)
	}
	want := []string{"intent mcp.files.refund", "result mcp.files.refund unknown"}
	if got := o.toldResults(organizations[0], 1); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// A task ends when the server says so, and otherwise its end is unknown.
func TestTasks(t *testing.T) {
	for name, tc := range map[string]struct {
		handle, status string // of tasks/get; "" ends the session
		notified       bool
		want           string
	}{
		"completed":       {`{"resultType":"task","taskId":"t1","status":"working"}`, `"completed","result":{"content":[]}`, false, "ok"},
		"failed tool":     {`{"resultType":"task","taskId":"t1","status":"working"}`, `"completed","result":{"content":[],"isError":true}`, false, "error"},
		"failed":          {`{"task":{"taskId":"t1","status":"working"}}`, `"failed"`, false, "error"},
		"cancelled":       {`{"task":{"taskId":"t1","status":"working"}}`, `"cancelled"`, false, "unknown"},
		"notified":        {`{"resultType":"task","taskId":"t1","status":"working"}`, `"completed"`, true, "ok"},
		"without an end":  {`{"task":{"taskId":"t1","status":"working"}}`, "", false, "unknown"},
		"with two tasks":  {`{"resultType":"task","taskId":"t1","task":{"taskId":"t2"}}`, "", false, "unknown"},
		"as input by tag": {`{"resultType":"task","task":{"taskId":"t1","status":"working"}}`, `"completed"`, false, "ok"},
	} {
		o := newOffice(t)
		server, c := startRoundTrips(t, o, nil)
		server.answer("tools/call", tc.handle)
		c.handshake(revision2025November)
		if got := c.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run"}}`); got != `{"jsonrpc":"2.0","id":1,"result":`+tc.handle+`}` {
			t.Errorf("%s: got %s", name, got)
		}
		server.answer("tasks/get", `{"taskId":"t1","status":"working"}`)
		const get = `{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"t1"}}`
		c.ask(get)
		if got := o.told(organizations[0]); !slices.Equal(got, []string{"intent mcp.files.run"}) {
			t.Errorf("%s: before the end: %v", name, got)
		}
		switch {
		case tc.status == "":
			c.in.Close()
		case tc.notified:
			server.send(t, `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t1","status":`+tc.status+`}}`)
			c.next()
		default:
			server.answer("tasks/get", `{"taskId":"t1","status":`+tc.status+`}`)
			c.ask(get)
		}
		want := []string{"intent mcp.files.run", "result mcp.files.run " + tc.want}
		if got := o.toldResults(organizations[0], 1); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}
