package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/mcp/message"
	"github.com/agentledger/agentledger/internal/mcp/upstream"
)

// startCounter returns a gateway in front of a counter for one of the organizations.
func startCounter(t testing.TB, o *office, org id.Organization, change func(*Config)) (*counter, *mcp.ClientSession) {
	t.Helper()
	c := &counter{}
	config := newConfig(t, o, org, t.TempDir())
	config.Servers = []Server{{Name: "shop", Connect: sdkServer(c.server())}}
	change(&config)
	g, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	startSending(t, g)
	return c, connectCaller(t, g, nil)
}

func callTool(t testing.TB, s *mcp.ClientSession, name string, arguments map[string]any) *mcp.CallToolResult {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

// callAgain repeats a call for as long as it is told to wait for people, as agents do.
func callAgain(t testing.TB, s *mcp.ClientSession, name string, arguments map[string]any) *mcp.CallToolResult {
	t.Helper()
	for {
		if r := callTool(t, s, name, arguments); !strings.Contains(textOf(r), "Call again with the same arguments to go on waiting.") {
			return r
		}
	}
}

// Each organization's ledger has the calls that went through its own gateway.
func TestCallIsRecorded(t *testing.T) {
	o := newOffice(t)
	o.decisions["mcp.shop.pay"] = "deny"
	for i, org := range organizations {
		c, caller := startCounter(t, o, org, func(*Config) {})
		for range i + 1 {
			if r := callTool(t, caller, "add", map[string]any{"a": 1, "b": 2}); r.IsError || !strings.Contains(textOf(r), `"sum":3`) {
				t.Errorf("add: got %+v", r)
			}
		}
		r := callTool(t, caller, "pay", map[string]any{"a": 1})
		if !r.IsError || !strings.Contains(textOf(r), "as told (rule r of policy p), event evt_") {
			t.Errorf("pay: got %q", textOf(r))
		}
		if r := callTool(t, caller, "fail", map[string]any{"a": 1}); !r.IsError || textOf(r) != "no funds" {
			t.Errorf("fail: got %q", textOf(r))
		}
		if c.count() != i+1 {
			t.Errorf("got %d calls, want %d", c.count(), i+1)
		}
		want := []string{"intent mcp.shop.fail", "intent mcp.shop.pay", "result mcp.shop.fail error"}
		for range i + 1 {
			want = append(want, "intent mcp.shop.add", "result mcp.shop.add ok")
		}
		slices.Sort(want)
		if got := o.toldResults(org, i+2); !slices.Equal(got, want) {
			t.Errorf("ledger of %d: got %v, want %v", i, got, want)
		}
	}
}

func TestCallWithoutServiceIsNotMade(t *testing.T) {
	o := newOffice(t)
	c, caller := startCounter(t, o, organizations[0], func(*Config) {})
	o.set(func() { o.down = true })
	if r := callTool(t, caller, "add", map[string]any{"a": 1}); !r.IsError || !strings.HasPrefix(textOf(r), "Not done, because there is no decision") {
		t.Errorf("got %q", textOf(r))
	}
	o.set(func() { o.down = false })
	if r := callTool(t, caller, "add", map[string]any{"a": 1}); r.IsError || c.count() != 1 {
		t.Errorf("got %q, %d calls", textOf(r), c.count())
	}
}

// An equal call belongs to the approval that waits, another one to none.
func TestCallWaitsForPeople(t *testing.T) {
	o := newOffice(t)
	o.decisions["mcp.shop.pay"] = "allow_with_obligation"
	c, caller := startCounter(t, o, organizations[0], func(c *Config) { c.Wait = 20 * time.Millisecond })
	for range 2 {
		if r := callTool(t, caller, "pay", map[string]any{"a": 1}); !strings.Contains(textOf(r), "waits for apr_1,") || !r.IsError {
			t.Fatalf("got %q", textOf(r))
		}
	}
	if r := callTool(t, caller, "pay", map[string]any{"a": 2}); !strings.Contains(textOf(r), "waits for apr_2,") {
		t.Errorf("other arguments: got %q", textOf(r))
	}
	o.set(func() { o.votes["apr_1"], o.votes["apr_2"] = "approved", "denied" })
	if r := callAgain(t, caller, "pay", map[string]any{"a": 1}); r.IsError || c.count() != 1 {
		t.Errorf("approved: got %q, %d calls", textOf(r), c.count())
	}
	if r := callAgain(t, caller, "pay", map[string]any{"a": 2}); !strings.Contains(textOf(r), "not today") || c.count() != 1 {
		t.Errorf("denied: got %q", textOf(r))
	}
	for _, a := range []int{1, 2} { // both approvals are over: these are new calls
		if r := callTool(t, caller, "pay", map[string]any{"a": a}); !strings.Contains(textOf(r), "waits for apr_"+string(rune('2'+a))) {
			t.Errorf("%d again: got %q", a, textOf(r))
		}
	}
}

// The server receives every number digit by digit, and the ledger has those that a double cannot hold as tagged texts.
func TestExactNumbers(t *testing.T) {
	for _, digest := range []bool{false, true} {
		o := newOffice(t)
		server := (&counter{}).server()
		server.AddTool(&mcp.Tool{Name: "echo", InputSchema: map[string]any{"type": "object"}},
			func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
			})
		_, caller := startCounter(t, o, organizations[0], func(c *Config) {
			c.Servers = []Server{{Name: "shop", Connect: sdkServer(server)}}
			c.Rules = []Rule{{Tools: "mcp.shop.*", Digest: digest, Seen: map[bool][]string{true: {"id", "o"}}[digest]}}
		})
		sent := `{"a":1.50,"id":1915883588174806058,"o":{"$number":"5"},"$tagged":true}`
		r, err := caller.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: jsontext.Value(sent)})
		if want := `{"$tagged":true,"a":1.5,"id":1915883588174806058,"o":{"$number":"5"}}`; err != nil || r.IsError || textOf(r) != want {
			t.Errorf("got %+v, %v; want %s", r, err, want)
		}
		o.toldResults(organizations[0], 1)
		payload := string(o.firstEvent(organizations[0]).Payload)
		for _, want := range []string{`"$tagged":true`, `"id":{"$number":"1915883588174806058"}`, `"o":{"$object":{"$number":"5"}}`} {
			if !strings.Contains(payload, want) {
				t.Errorf("the payload is %s, without %s", payload, want)
			}
		}
		sum := sha256.Sum256([]byte(`{"a":1.5,"argument_$tagged":true,"id":1915883588174806058,"o":{"$number":"5"}}`))
		want := map[bool]string{false: `"argument_$tagged":true`, true: `"input_digest":"` + hex.EncodeToString(sum[:]) + `"`}[digest]
		if !strings.Contains(payload, want) {
			t.Errorf("the payload is %s, without %s", payload, want)
		}
	}
}

// payloadOf returns the payload of the result of a tool's only call.
func (o *office) payloadOf(t *testing.T, org id.Organization, tool id.Tool) map[string]jsontext.Value {
	t.Helper()
	o.toldResults(org, 1)
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.events[org] {
		var members map[string]jsontext.Value
		if err := json.Unmarshal(e.Payload, &members); err == nil && e.Tool == tool && e.Call().Phase == "result" {
			return members
		}
	}
	t.Fatalf("no result of %s", tool)
	return nil
}

// A rule chooses whether the result itself is recorded. What is too long or too deep for an event is told.
func TestRecordedOutput(t *testing.T) {
	deep := strings.Repeat("[", jcs.MaxDepth-2) + strings.Repeat("]", jcs.MaxDepth-2)
	for name, tc := range map[string]struct {
		result string
		rule   Rule
		want   map[string]string // the first bytes of members; "" for a missing one
	}{
		"digest":    {`{"x":1}`, Rule{}, map[string]string{"output": "", "output_digest": `"5041bf1f`}},
		"whole":     {`{ "x": 1.0 }`, Rule{Output: true}, map[string]string{"output": `{"x":1}`, "output_digest": `"5041bf1f`}},
		"error":     {`{"isError":true,"x":1}`, Rule{Output: true}, map[string]string{"output": `{"isError":true,"x":1}`}},
		"other":     {`{"x":1}`, Rule{Tools: "mcp.other.*", Output: true}, map[string]string{"output": ""}},
		"inexact":   {`{"x":1e400}`, Rule{Output: true}, map[string]string{"output": `{"inexact_result":"{\"x\":1e400}"}`}},
		"deep":      {`{"x":` + deep + `}`, Rule{Output: true}, map[string]string{"output": `{"inexact_result":"{\"x\":[[[`}},
		"too long":  {`{"x":"` + strings.Repeat("y", maxOutput) + `"}`, Rule{Output: true}, map[string]string{"output": "", "output_left_out": "204808"}},
		"expanding": {`{"x":[` + strings.Repeat("1e20,", 20_000) + `1]}`, Rule{Output: true}, map[string]string{"output": "", "output_left_out": "4400"}},
	} {
		o := newOffice(t)
		if tc.rule.Tools == "" {
			tc.rule.Tools = "mcp.shop.*"
		}
		server := (&counter{}).server()
		server.AddTool(&mcp.Tool{Name: "echo", InputSchema: map[string]any{"type": "object"}},
			func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
			})
		_, caller := startCounter(t, o, organizations[0], func(c *Config) {
			c.Servers = []Server{{Name: "shop", Connect: sdkServer(server)}}
			c.Rules = []Rule{tc.rule}
			c.Servers = []Server{{Name: "shop", Connect: answering(tc.result)}}
		})
		if _, err := caller.CallTool(t.Context(), &mcp.CallToolParams{Name: "get"}); err != nil && name != "deep" && name != "inexact" {
			t.Errorf("%s: %v", name, err)
		}
		got := o.payloadOf(t, organizations[0], "mcp.shop.get")
		for member, want := range tc.want {
			if text := string(got[member]); !strings.HasPrefix(text, want) || (text == "") != (want == "") {
				t.Errorf("%s: %s: got %.80s, want %s", name, member, text, want)
			}
		}
	}
}

// answering is a server that gives each tool call the same result.
func answering(result string) func(context.Context) (upstream.Conn, error) {
	return func(context.Context) (upstream.Conn, error) {
		return connectPipes(func(in io.ReadCloser, out io.WriteCloser) {
			defer out.Close()
			lines := message.NewLines(in, out, 0)
			for {
				m, err := lines.Read()
				if err != nil {
					return
				}
				switch {
				case m.Method == "initialize":
					_ = lines.Write(message.Message{ID: m.ID, Result: jsontext.Value(
						`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"a","version":"1"}}`)})
				case m.Method == "tools/call":
					_ = lines.Write(message.Message{ID: m.ID, Result: jsontext.Value(result)})
				case m.ID != nil:
					_ = lines.Write(m.Refuse(-32601, "unknown method"))
				}
			}
		}), nil
	}
}

// A call belongs to the trace of its traceparent, which the server gets too. A malformed one names no trace.
func TestTraceOfCall(t *testing.T) {
	for parent, want := range map[string]id.Trace{
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01":   "0af7651916cd43dd8448eb211c80319c",
		"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x": "0af7651916cd43dd8448eb211c80319c",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x": "",
		"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x": "",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01":   "",
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01":   "",
		"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01":   "",
		"": "",
	} {
		o, server := newOffice(t), newRawServer()
		g, _ := startRaw(t, o, map[string]*rawServer{"files": server}, nil)
		c := connectRaw(t, g)
		c.handshake(revision2025November)
		c.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get","_meta":{"traceparent":"` + parent + `"}}}`)
		if got := o.firstEvent(organizations[0]).TraceID; got != want && (want != "" || !strings.HasPrefix(string(got), "trc_")) {
			t.Errorf("%q: got %q, want %q", parent, got, want)
		}
		signed := o.firstEvent(organizations[0]).Traceparent().String()
		if (signed != "") != (want != "") || !strings.Contains(parent, strings.TrimPrefix(signed, "00")) {
			t.Errorf("%q: signed %q", parent, signed)
		}
		if got := string(server.await("tools/call").Params); !strings.Contains(got, `"traceparent":"`+parent+`"`) {
			t.Errorf("%q: the server got %s", parent, got)
		}
	}
}

// Both events of a call are signed with the subject of the gateway, and an open approval of one subject is not used for another.
func TestSubjectOfCall(t *testing.T) {
	o := newOffice(t)
	o.decisions["mcp.files.pay"] = "allow_with_obligation"
	of := func(subject string) *event.OnBehalfOf {
		return &event.OnBehalfOf{Issuer: "https://login.example", Subject: subject}
	}
	g, _ := startRaw(t, o, map[string]*rawServer{"files": newRawServer()}, func(c *Config) { c.OnBehalfOf, c.Wait = of("u1"), time.Millisecond })
	startSending(t, g)
	c := connectRaw(t, g)
	c.handshake(revision2025November)
	c.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get"}}`)
	o.toldResults(organizations[0], 1)
	o.mu.Lock()
	events := slices.Clone(o.events[organizations[0]])
	o.mu.Unlock()
	if len(events) != 2 {
		t.Errorf("got %d events, want 2", len(events))
	}
	for i, e := range events {
		if got, err := e.OnBehalfOf(); err != nil || got == nil || got.Subject != "u1" {
			t.Errorf("event %d: got %+v, %v", i, got, err)
		}
	}
	for _, step := range []struct{ subject, approval string }{{"u1", "apr_1"}, {"u2", "apr_2"}, {"u1", "apr_1"}} {
		g.OnBehalfOf = of(step.subject)
		c := connectRaw(t, g)
		c.handshake(revision2025November)
		if got := c.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"pay"}}`); !strings.Contains(got, step.approval) {
			t.Errorf("%s: got %s, want %s", step.subject, got, step.approval)
		}
	}
}
