package listen_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentledger/agentledger/internal/mcp/gateway"
	"github.com/agentledger/agentledger/internal/mcp/listen"
	"github.com/agentledger/agentledger/internal/mcp/message"
)

// serveSDK joins a caller with a server of its own, which has one tool with progress and a question.
func serveSDK(ctx context.Context, caller gateway.Caller, _ string) error {
	fromCaller, toServer := io.Pipe()
	fromServer, toCaller := io.Pipe()
	server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, in map[string]any) (*mcp.CallToolResult, any, error) {
		if token := r.Params.GetProgressToken(); token != nil {
			if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 1}); err != nil {
				return nil, nil, err
			}
		}
		//lint:ignore SA1019 requests of servers to clients must pass, as long as the protocol has them
		roots, err := r.Session.ListRoots(ctx, nil)
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: roots.Roots[0].URI}}}, nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "say"}, func(ctx context.Context, r *mcp.CallToolRequest, in map[string]string) (*mcp.CallToolResult, any, error) {
		err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1})
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in["text"]}}}, nil, err
	})
	go server.Run(ctx, &mcp.IOTransport{Reader: fromCaller, Writer: toCaller})
	answers := message.NewLines(fromServer, nil, 0)
	go func() {
		for {
			m, err := answers.Read()
			if err != nil {
				return
			}
			_ = caller.Write(m)
		}
	}()
	defer toServer.Close()
	questions := message.NewLines(nil, toServer, 0)
	for {
		m, err := caller.Read()
		if err != nil {
			return nil
		}
		if err := questions.Write(m); err != nil {
			return err
		}
	}
}

func start(t *testing.T, o listen.Options) *httptest.Server {
	ctx, cancel := context.WithCancel(context.Background())
	if o.Serve == nil {
		o.Serve = serveSDK
	}
	handler := listen.New(ctx, o)
	server := httptest.NewServer(handler)
	server.URL += listen.Path
	t.Cleanup(func() {
		cancel()
		handler.Wait()
		server.Close()
	})
	return server
}

// connect connects the client of the SDK, with a revision that has sessions or one that has none.
func connect(t *testing.T, url, revision, root string, progress chan<- float64) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
	})
	//lint:ignore SA1019 as above
	c.AddRoots(&mcp.Root{URI: root})
	s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Questions and progress of a call reach the client that has made it, and no other.
func TestSessionsAreApart(t *testing.T) {
	server := start(t, listen.Options{})
	var heard [2]chan float64
	var sessions [2]*mcp.ClientSession
	for i, root := range []string{"file:///one", "file:///two"} {
		heard[i] = make(chan float64, 10)
		sessions[i] = connect(t, server.URL, "2025-11-25", root, heard[i])
	}
	for i, want := range []string{"file:///one", "file:///two"} {
		params := &mcp.CallToolParams{Name: "ask", Arguments: map[string]any{}}
		params.SetProgressToken("t")
		r, err := sessions[i].CallTool(t.Context(), params)
		if err != nil || r.Content[0].(*mcp.TextContent).Text != want {
			t.Errorf("session %d: got %+v, %v", i, r, err)
		}
		if got := <-heard[i]; got != 1 || len(heard[1-i]) != 0 {
			t.Errorf("session %d: progress %v, the other one heard %d", i, got, len(heard[1-i]))
		}
	}
}

// The SDK's clients of the revision without sessions share a server, and each hears of its own calls.
func TestStatelessClients(t *testing.T) {
	server := start(t, listen.Options{})
	var heard [2]chan float64
	var clients [2]*mcp.ClientSession
	for i := range clients {
		heard[i] = make(chan float64, 10)
		clients[i] = connect(t, server.URL, "2026-07-28", "file:///", heard[i])
		if got := clients[i].InitializeResult().ProtocolVersion; got != "2026-07-28" {
			t.Fatalf("negotiated %s", got)
		}
	}
	for i, want := range []string{"one", "two"} {
		params := &mcp.CallToolParams{Name: "say", Arguments: map[string]string{"text": want}}
		params.SetProgressToken("t")
		r, err := clients[i].CallTool(t.Context(), params)
		if err != nil || r.IsError || r.Content[0].(*mcp.TextContent).Text != want {
			t.Errorf("client %d: got %+v, %v", i, r, err)
		}
		if got := <-heard[i]; got != 1 || len(heard[1-i]) != 0 {
			t.Errorf("client %d: progress %v, the other one heard %d", i, got, len(heard[1-i]))
		}
	}
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`

func post(t *testing.T, url, body string, headers map[string]string) (status int, session string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	r.Host = headers["Host"]
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, answer.Header.Get("Mcp-Session-Id")
}

func TestRequestsAreChecked(t *testing.T) {
	open := start(t, listen.Options{Origins: []string{"https://app.example"}, MaxBytes: 1000})
	closed := start(t, listen.Options{Token: "right"})
	for name, tc := range map[string]struct {
		url, body string
		headers   map[string]string
		want      int
	}{
		"no origin":       {open.URL, hello, nil, 200},
		"another path":    {open.URL + "/x", hello, nil, 404},
		"allowed origin":  {open.URL, hello, map[string]string{"Origin": "https://app.example"}, 200},
		"foreign origin":  {open.URL, hello, map[string]string{"Origin": "https://evil.example"}, 403},
		"null origin":     {open.URL, hello, map[string]string{"Origin": "null"}, 403},
		"rebound name":    {open.URL, hello, map[string]string{"Host": "evil.example"}, 403},
		"local name":      {open.URL, hello, map[string]string{"Host": "localhost:80"}, 200},
		"no token":        {closed.URL, hello, nil, 401},
		"wrong token":     {closed.URL, hello, map[string]string{"Authorization": "Bearer wrong"}, 401},
		"token":           {closed.URL, hello, map[string]string{"Authorization": "Bearer right"}, 200},
		"no session":      {open.URL, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, nil, 400},
		"unknown session": {open.URL, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, map[string]string{"Mcp-Session-Id": "x"}, 404},
		"batch":           {open.URL, `[]`, nil, 400},
		"too long":        {open.URL, strings.Repeat(" ", 1001), nil, 413},
	} {
		if got, _ := post(t, tc.url, tc.body, tc.headers); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}

// A client beyond the bound is refused, and its neighbours go on.
func TestSessionsAreBounded(t *testing.T) {
	server := start(t, listen.Options{Sessions: 1})
	status, session := post(t, server.URL, hello, nil)
	if status != 200 || session == "" {
		t.Fatalf("got %d, %q", status, session)
	}
	if got, _ := post(t, server.URL, hello, nil); got != 503 {
		t.Errorf("beyond the bound: got %d", got)
	}
	known := map[string]string{"Mcp-Session-Id": session}
	if got, _ := post(t, server.URL, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, known); got != 200 {
		t.Errorf("the neighbour: got %d", got)
	}
}

// Each caller has a token, and a session belongs to the caller that has opened it.
func TestCallersHaveTokens(t *testing.T) {
	seen := make(chan string, 10)
	server := start(t, listen.Options{Callers: map[string]string{"token-a": "ana", "token-b": "ben"},
		Serve: func(ctx context.Context, caller gateway.Caller, _ string) error {
			for {
				m, err := caller.Read()
				if err != nil {
					return nil
				}
				seen <- m.Caller
				_ = caller.Write(message.Message{ID: m.ID, Result: []byte("{}")})
			}
		}})
	requests := 0
	post := func(token, session, method string) (int, string) {
		requests++ // an id may be used only once in a session
		r, err := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{}}`, requests, method)))
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode, answer.Header.Get("Mcp-Session-Id")
	}
	for _, token := range []string{"", "token-c", "ana"} {
		if status, _ := post(token, "", "initialize"); status != http.StatusUnauthorized {
			t.Errorf("token %q: status %d", token, status)
		}
	}
	status, session := post("token-a", "", "initialize")
	if status != http.StatusOK || <-seen != "ana" {
		t.Fatalf("status %d", status)
	}
	if status, _ := post("token-b", session, "ping"); status != http.StatusNotFound {
		t.Errorf("the session of another caller: status %d", status)
	}
	if status, _ := post("token-a", session, "ping"); status != http.StatusOK || <-seen != "ana" {
		t.Errorf("the own session: status %d", status)
	}
}
