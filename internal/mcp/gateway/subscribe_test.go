package gateway

import (
	"strings"
	"testing"
)

// startStateless returns a client without a handshake, and two servers that know the revision.
func startStateless(t *testing.T) (c *rawCaller, a, b *rawServer, reported func() string) {
	t.Helper()
	a, b = newRawServer(), newRawServer()
	for name, server := range map[string]*rawServer{"a": a, "b": b} {
		server.results["server/discover"] = `{"resultType":"complete","supportedVersions":["2025-11-25","2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{}},"instructions":"use ` + name + `"}`
		server.results["tools/list"] = `{"resultType":"complete","tools":[{"name":"read"}],"ttlMs":5}`
		server.results["resources/list"] = `{"resultType":"complete","resources":[{"uri":"` + name + `://1","name":"1"}]}`
		server.results["subscriptions/listen"] = "silence"
	}
	g, reported := startRaw(t, newOffice(t), map[string]*rawServer{"a": a, "b": b}, nil)
	return connectRaw(t, g), a, b, reported
}

// request returns a request without a handshake.
func request(id, method, params string) string {
	if params != "" {
		params += ","
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params + statelessMeta + `}}`
}

// Several servers are one server without a handshake too: their lists follow each other, whether the client has asked what
// they are or not.
func TestSeveralServersWithoutHandshake(t *testing.T) {
	c, a, b, _ := startStateless(t)
	page := c.ask(request("1", "tools/list", ""))
	next := c.ask(request("2", "tools/list", `"cursor":"1/"`))
	if !strings.Contains(page, `__read"`) || !strings.Contains(page, `"nextCursor":"1/"`) || !strings.Contains(next, `__read"`) || strings.Contains(next, "nextCursor") {
		t.Errorf("got %s and %s", page, next)
	}
	if got := a.got() + b.got(); strings.Count(got, "server/discover") != 2 {
		t.Errorf("the servers got %s", got)
	}
	got := c.ask(request("3", "server/discover", ""))
	for _, want := range []string{`"supportedVersions":["2025-11-25","2026-07-28"]`, `"resultType":"complete"`, `"listChanged":true`,
		`a: use a`, `b: use b`, `"name":"agentledger-gateway"`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	b.answer("server/discover", `{"resultType":"complete","supportedVersions":["2025-11-25"],"capabilities":{}}`)
	if got := c.ask(request("4", "server/discover", "")); !strings.Contains(got, "-32601") {
		t.Errorf("one server is older: got %s", got)
	}
}

// A subscription reaches all servers, each with its own resources. Its one acknowledgement comes before all notifications,
// it ends with the last server, and a server can neither widen nor end it for the others.
func TestSubscriptionAtSeveralServers(t *testing.T) {
	c, a, b, reported := startStateless(t)
	for page := c.ask(request("1", "resources/list", "")); strings.Contains(page, "nextCursor"); {
		page = c.ask(request("1", "resources/list", `"cursor":"1/"`))
	}
	const wanted = `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a://1","b://1","c://1"]}`
	c.send(request(`"s"`, "subscriptions/listen", wanted))
	for name, server := range map[string]*rawServer{"a": a, "b": b} {
		want := `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["` + name + `://1"]}`
		if got := server.await("subscriptions/listen"); !strings.Contains(string(got.Params), want) || string(got.ID) != `"s"` {
			t.Errorf("%s: got %s", name, got.Params)
		}
	}
	const meta = `"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}`
	a.send(t, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a://1","b://1"]},`+meta+`}}`)
	a.send(t, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{`+meta+`}}`)
	a.send(t, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{},"_meta":{"io.modelcontextprotocol/subscriptionId":"other"}}}`)
	a.send(t, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"b://1",`+meta+`}}`)
	a.send(t, `{"jsonrpc":"2.0","id":"x","method":"sampling/createMessage","params":{}}`)
	a.await("") // its refusal shows that the messages before it were handled
	b.send(t, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"promptsListChanged":true},`+meta+`}}`)
	if got := c.next(); !strings.Contains(got, "acknowledged") || !strings.Contains(got, `"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["a://1"]}`) ||
		!strings.Contains(got, `"io.modelcontextprotocol/subscriptionId":"s"`) {
		t.Errorf("got %s", got)
	}
	if got := c.next(); !strings.Contains(got, "notifications/tools/list_changed") {
		t.Errorf("got %s", got)
	}
	b.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s"}}`)
	a.send(t, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://1",`+meta+`}}`)
	if got := c.next(); !strings.Contains(got, "a://1") {
		t.Errorf("after one server has ended: got %s", got)
	}
	a.send(t, `{"jsonrpc":"2.0","id":"s","result":{"resultType":"complete",`+meta+`}}`)
	if got := c.next(); !strings.Contains(got, `"id":"s","result"`) {
		t.Errorf("the end: got %s", got)
	}
	if got := reported(); !strings.Contains(got, "no such subscription") || !strings.Contains(got, "has not listed the resource") {
		t.Errorf("reported: %s", got)
	}
	// A server that refuses agrees to nothing. The client's cancellation reaches both.
	b.answer("subscriptions/listen", "")
	a.messages()
	c.send(request(`"u"`, "subscriptions/listen", wanted))
	a.await("subscriptions/listen")
	a.send(t, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":"u"}}}`)
	if got := c.next(); !strings.Contains(got, `"notifications":{"toolsListChanged":true}`) {
		t.Errorf("got %s", got)
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"u"}}`)
	a.await("notifications/cancelled")
}

// What a client asks for, what a server agrees to, and what waits for the acknowledgement of another server are bounded.
func TestSubscriptionIsBounded(t *testing.T) {
	c, a, b, reported := startStateless(t)
	for page := c.ask(request("1", "resources/list", "")); strings.Contains(page, "nextCursor"); {
		page = c.ask(request("1", "resources/list", `"cursor":"1/"`))
	}
	many := func(n int) string { return strings.TrimSuffix(strings.Repeat(`"a://1",`, n), ",") }
	got := c.ask(request(`"r"`, "subscriptions/listen", `"notifications":{"resourceSubscriptions":[`+many(maxSubscribed)+`],"taskIds":["t"]}`))
	if !strings.Contains(got, "-32602") || !strings.Contains(got, "1001 resources and tasks: listen for at most 1000") {
		t.Errorf("got %s", got)
	}
	if got := a.got() + b.got(); strings.Contains(got, "subscriptions/listen") {
		t.Errorf("the servers got %s", got)
	}
	c.send(request(`"s"`, "subscriptions/listen", `"notifications":{"resourceSubscriptions":["a://1"]}`))
	a.await("subscriptions/listen")
	b.await("subscriptions/listen")
	const meta = `"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}`
	a.send(t, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":[`+many(100_000)+`]},`+meta+`}}`)
	large := strings.Repeat("x", maxHeldBytes/4)
	for range 5 {
		a.send(t, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://1","text":"`+large+`",`+meta+`}}`)
	}
	a.send(t, `{"jsonrpc":"2.0","id":"x","method":"sampling/createMessage","params":{}}`)
	a.await("") // its refusal shows that the messages before it were handled
	b.send(t, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{},`+meta+`}}`)
	if got := c.next(); !strings.Contains(got, `"resourceSubscriptions":["a://1"]`) {
		t.Errorf("got %.200s", got)
	}
	for range 3 {
		if got := c.next(); !strings.Contains(got, "notifications/resources/updated") {
			t.Errorf("got %.200s", got)
		}
	}
	a.send(t, `{"jsonrpc":"2.0","id":"s","result":{"resultType":"complete",`+meta+`}}`)
	b.send(t, `{"jsonrpc":"2.0","id":"s","result":{"resultType":"complete",`+meta+`}}`)
	if got := c.next(); !strings.Contains(got, `"id":"s","result"`) {
		t.Errorf("after the three that fit: got %.200s", got)
	}
	if got := reported(); strings.Count(got, "dropped") != 2 {
		t.Errorf("reported: %s", got)
	}
}
