package toolserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentledger/agentledger/internal/mcp/message"
	"github.com/agentledger/agentledger/internal/mcp/toolserver"
)

// newServer returns a server of an organization with a tool that says its arguments, one that fails, and one that
// waits until release is closed or it is cancelled.
func newServer(organization string, release <-chan struct{}) *toolserver.Server {
	say := func(_ context.Context, arguments map[string]string) (string, error) {
		var all []string
		for _, name := range slices.Sorted(maps.Keys(arguments)) {
			all = append(all, name+"="+arguments[name])
		}
		return organization + ": " + strings.Join(all, " "), nil
	}
	fail := func(context.Context, map[string]string) (string, error) {
		return "half", errors.New("no such approval")
	}
	wait := func(ctx context.Context, _ map[string]string) (string, error) {
		select {
		case <-release:
			return "released", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return &toolserver.Server{Name: organization, Version: "7", Tools: []toolserver.Tool{
		{Name: "say", Description: "Says.", ReadOnly: true, Call: say, Arguments: []toolserver.Argument{
			{Name: "a", Description: "First.", Required: true}, {Name: "b", Description: "Second."}}},
		{Name: "fail", Call: fail},
		{Name: "wait", Call: wait},
	}}
}

// The client of the protocol's own authors lists and calls the tools, by the newest version and by each handshake.
func TestOfficialClient(t *testing.T) {
	for _, version := range []string{"", "2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		for _, organization := range []string{"red", "blue"} {
			requests, toServer := io.Pipe()
			answers, toClient := io.Pipe()
			ended := make(chan error, 1)
			go func() {
				ended <- newServer(organization, nil).Serve(t.Context(), message.NewLines(requests, toClient, 0))
				toClient.Close()
			}()
			var options *mcp.ClientSessionOptions
			if version != "" {
				options = &mcp.ClientSessionOptions{ProtocolVersion: version}
			}
			caller, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).
				Connect(t.Context(), &mcp.IOTransport{Reader: answers, Writer: toServer}, options)
			if err != nil {
				t.Fatal(err)
			}
			begun := caller.InitializeResult()
			if begun.ServerInfo.Name != organization || version != "" && begun.ProtocolVersion != version {
				t.Errorf("%s: got %+v", version, begun)
			}
			checkCalls(t, caller, organization)
			caller.Close()
			if err := <-ended; err != nil {
				t.Errorf("the server ended with %v", err)
			}
		}
	}
}

func checkCalls(t *testing.T, caller *mcp.ClientSession, organization string) {
	t.Helper()
	listed, err := caller.ListTools(t.Context(), nil)
	if err != nil || len(listed.Tools) != 3 {
		t.Fatalf("got %+v, %v", listed, err)
	}
	schema, err := json.Marshal(listed.Tools[0].InputSchema)
	want := `{"additionalProperties":false,"properties":{"a":{"description":"First.","type":"string"},` +
		`"b":{"description":"Second.","type":"string"}},"required":["a"],"type":"object"}`
	if err != nil || string(schema) != want || !listed.Tools[0].Annotations.ReadOnlyHint ||
		listed.Tools[1].Annotations.ReadOnlyHint || !*listed.Tools[1].Annotations.DestructiveHint {
		t.Errorf("got %s, %v, %+v", schema, err, listed.Tools[0].Annotations)
	}
	for _, row := range []struct {
		tool      string
		arguments any
		want      string
		failed    bool
	}{
		{"say", map[string]any{"a": "1"}, organization + ": a=1", false},
		{"say", map[string]any{"a": "é\x1b\n", "b": ""}, organization + ": a=é\x1b\n b=", false},
		{"say", map[string]any{"b": "2"}, "arguments: a is missing", true},
		{"say", map[string]any{"a": "1", "c": "2"}, `arguments: the tool has no argument "c"`, true},
		{"say", map[string]any{"a": 1}, "arguments: must be an object of texts", true},
		{"say", nil, "arguments: a is missing", true},
		{"fail", nil, "no such approval", true},
	} {
		r, err := caller.CallTool(t.Context(), &mcp.CallToolParams{Name: row.tool, Arguments: row.arguments})
		if err != nil || r.IsError != row.failed || r.Content[0].(*mcp.TextContent).Text != row.want {
			t.Errorf("%s %v: got %+v, %v, want %s", row.tool, row.arguments, r, err, row.want)
		}
	}
	if _, err := caller.CallTool(t.Context(), &mcp.CallToolParams{Name: "nothing"}); err == nil {
		t.Error("a tool that is not there was called")
	}
}

// ask writes lines to a server and returns its answers, in any order, after the input has ended.
func ask(t *testing.T, s *toolserver.Server, lines ...string) []string {
	t.Helper()
	var out strings.Builder
	in := strings.NewReader(strings.Join(lines, "\n") + "\n")
	if err := s.Serve(t.Context(), message.NewLines(in, &out, 1000)); err != nil {
		t.Error(err)
	}
	return slices.Sorted(strings.Lines(out.String()))
}

func TestMessages(t *testing.T) {
	const begin = `{"jsonrpc":"2.0","id":1,`
	const modern = `"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
	for name, row := range map[string]struct{ line, want string }{
		"no JSON":           {`{"jsonrpc"`, `"code":-32700`},
		"a name twice":      {begin + `"method":"tools/call","params":{"name":"say","arguments":{"a":"1","a":"2"}}}`, `"code":-32700`},
		"too long":          {begin + `"method":"` + strings.Repeat("x", 1000) + `"}`, `"code":-32600`},
		"unknown method":    {begin + `"method":"prompts/list"}`, `"code":-32601`},
		"malformed params":  {begin + `"method":"tools/call","params":{"name":7}}`, `"code":-32602`},
		"unknown tool":      {begin + `"method":"tools/call","params":{"name":"SAY"}}`, `"code":-32602`},
		"ping":              {`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, `{"jsonrpc":"2.0","id":9007199254740993,"result":{}}`},
		"modern ping":       {begin + `"method":"ping",` + modern, `"code":-32601`},
		"modern handshake":  {begin + `"method":"initialize",` + modern, `"code":-32601`},
		"discover":          {begin + `"method":"server/discover",` + modern, `"supportedVersions":["2026-07-28","2025-11-25"`},
		"no version":        {begin + `"method":"server/discover"}`, `"code":-32601`},
		"another version":   {begin + `"method":"tools/list",` + strings.Replace(modern, "2026", "2027", 1), `"code":-32022,"data":{"requested":"2027-07-28"`},
		"an old handshake":  {begin + `"method":"initialize","params":{"protocolVersion":"2024-01-01"}}`, `"protocolVersion":"2025-11-25"`},
		"a notification":    {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, ""},
		"an answer":         {begin + `"result":{}}`, ""},
		"nothing to cancel": {`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, ""},
		"cancels nothing":   {`{"jsonrpc":"2.0","method":"notifications/cancelled","params":7}`, ""},
	} {
		got := ask(t, newServer("red", nil), row.line)
		if row.want == "" && len(got) != 0 || row.want != "" && (len(got) != 1 || !strings.Contains(got[0], row.want)) {
			t.Errorf("%s: got %q, want %s", name, got, row.want)
		}
	}
}

// Calls beyond the bound are refused, a second one with the same id too, and a cancelled one is not answered. The
// client's end lets the others finish.
func TestCallsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		in, toServer := io.Pipe()
		answers, out := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			ended <- newServer("blue", release).Serve(t.Context(), message.NewLines(in, out, 0))
			out.Close()
		}()
		var lines []string
		go func() {
			for scanner := bufio.NewScanner(answers); scanner.Scan(); {
				lines = append(lines, scanner.Text())
			}
		}()
		for i := range toolserver.MaxCalls + 1 {
			fmt.Fprintf(toServer, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"wait"}}`+"\n", i)
		}
		fmt.Fprintln(toServer, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"wait"}}`)
		fmt.Fprintln(toServer, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
		synctest.Wait()
		if len(lines) != 2 || !strings.Contains(lines[0], `"id":16,"error":{"code":-32000`) || !strings.Contains(lines[1], `"id":3,"error":{"code":-32600`) {
			t.Errorf("got %q", lines)
		}
		toServer.Close()
		synctest.Wait()
		select {
		case err := <-ended:
			t.Errorf("ended before its calls: %v", err)
		default:
		}
		close(release)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		answered := strings.Join(lines, "\n")
		if len(lines) != 2+toolserver.MaxCalls-1 || strings.Contains(answered, `"id":5`) || strings.Count(answered, "released") != toolserver.MaxCalls-1 {
			t.Errorf("got %s", answered)
		}
	})
}

// The end of the program ends a server whose client says nothing.
func TestEndOfContext(t *testing.T) {
	in, toServer := io.Pipe()
	defer toServer.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := newServer("red", nil).Serve(ctx, message.NewLines(in, io.Discard, 0)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
