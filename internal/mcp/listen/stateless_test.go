package listen_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/mcp/gateway"
	"github.com/agentledger/agentledger/internal/mcp/listen"
	"github.com/agentledger/agentledger/internal/mcp/message"
)

const stateless = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`

// echoServer answers each request with what it has received. A request of the tool "wait" waits for the test.
type echoServer struct {
	mu       sync.Mutex
	sessions []string // caller and origin of each
	waiting  chan message.Message
	caller   chan gateway.Caller
	gone     chan message.Message
}

func (e *echoServer) serve(ctx context.Context, caller gateway.Caller, origin string) error {
	e.mu.Lock()
	e.sessions = append(e.sessions, origin)
	e.mu.Unlock()
	for {
		m, err := caller.Read()
		if err != nil {
			return nil
		}
		switch {
		case m.Method == "notifications/cancelled":
			e.gone <- m
		case strings.Contains(string(m.Params), `"wait"`):
			e.caller <- caller
			e.waiting <- m
		case m.Method == "nothing":
			_ = caller.Write(m.Refuse(message.CodeMethodNotFound, "no"))
		default:
			answer, _ := m.Answer(map[string]any{"params": m.Params, "caller": m.Caller})
			_ = caller.Write(answer)
		}
	}
}

func newEcho() *echoServer {
	return &echoServer{waiting: make(chan message.Message, 10), caller: make(chan gateway.Caller, 10), gone: make(chan message.Message, 10)}
}

func postStateless(t *testing.T, ctx context.Context, url, body string, header map[string]string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// The headers of a request repeat its body, or it is refused with the code and the status that the protocol defines.
func TestStatelessHeaders(t *testing.T) {
	server := start(t, listen.Options{Serve: newEcho().serve})
	call := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"héllo",` + stateless + `}}}`
	read := `{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"file:///a",` + stateless + `}}}`
	good := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "=?base64?aMOpbGxv?="}
	with := func(changes ...string) map[string]string {
		all := map[string]string{}
		for name, value := range good {
			all[name] = value
		}
		for i := 0; i < len(changes); i += 2 {
			all[changes[i]] = changes[i+1]
			if changes[i+1] == "" {
				delete(all, changes[i])
			}
		}
		return all
	}
	for name, tc := range map[string]struct {
		body   string
		header map[string]string
		status int
		want   string
	}{
		"call":             {call, good, 200, `{"jsonrpc":"2.0","id":7,"result"`},
		"read":             {read, with("Mcp-Method", "resources/read", "Mcp-Name", "file:///a"), 200, `"result"`},
		"list":             {`{"jsonrpc":"2.0","id":"x","method":"tools/list","params":{` + stateless + `}}}`, with("Mcp-Method", "tools/list", "Mcp-Name", ""), 200, `"id":"x","result"`},
		"unknown method":   {`{"jsonrpc":"2.0","id":7,"method":"nothing","params":{` + stateless + `}}}`, with("Mcp-Method", "nothing"), 404, "-32601"},
		"no version":       {call, with("Mcp-Protocol-Version", ""), 400, "-32020"},
		"another version":  {call, with("Mcp-Protocol-Version", "2025-11-25"), 400, "-32020"},
		"no method":        {call, with("Mcp-Method", ""), 400, "-32020"},
		"another method":   {call, with("Mcp-Method", "tools/list"), 400, "-32020"},
		"no name":          {call, with("Mcp-Name", ""), 400, "-32020"},
		"another name":     {call, with("Mcp-Name", "hello"), 400, "-32020"},
		"malformed name":   {call, with("Mcp-Name", "=?base64?*?="), 400, "-32020"},
		"no version in it": {`{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, with("Mcp-Method", "tools/list"), 400, "-32602"},
		"no capabilities":  {strings.Replace(call, `,"io.modelcontextprotocol/clientCapabilities":{}`, "", 1), good, 400, "-32602"},
		"other unknown":    {strings.Replace(call, "2026-07-28", "2031-01-01", 1), good, 400, "-32020"},
		"unknown version":  {strings.Replace(call, "2026-07-28", "2031-01-01", 1), with("Mcp-Protocol-Version", "2031-01-01"), 400, "-32022"},
		"notification":     {strings.Replace(call, `"id":7,`, "", 1), good, 400, "no notification"},
	} {
		answer := postStateless(t, t.Context(), server.URL, tc.body, tc.header)
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != tc.status || !strings.Contains(string(text), tc.want) || answer.Header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: got %d %s", name, answer.StatusCode, text)
		}
	}
}

// Two clients of one caller use the same id and progress token, and each gets its own messages. Callers share nothing.
func TestStatelessRequestsAreApart(t *testing.T) {
	echo := newEcho()
	server := start(t, listen.Options{Serve: echo.serve, Callers: map[string]string{"token-a": "ana", "token-b": "ben"}})
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait",` + stateless + `,"progressToken":"p"}}}`
	header := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "wait", "Authorization": "Bearer token-a"}
	lines := make(chan string, 20)
	var asked []message.Message
	for range 2 {
		go func() {
			answer := postStateless(t, t.Context(), server.URL, body, header)
			defer answer.Body.Close()
			for in := bufio.NewScanner(answer.Body); in.Scan(); {
				if data, ok := strings.CutPrefix(in.Text(), "data: "); ok {
					lines <- data
				}
			}
		}()
		asked = append(asked, <-echo.waiting)
	}
	first, second := <-echo.caller, <-echo.caller
	if first != second || string(asked[0].ID) == string(asked[1].ID) || strings.Contains(string(asked[0].Params), `"p"`) || asked[0].Caller != "ana" {
		t.Fatalf("got %+v", asked)
	}
	for i, m := range asked {
		var params struct {
			Meta struct {
				Token jsontext.Value `json:"progressToken"`
			} `json:"_meta"`
		}
		if err := json.Unmarshal(m.Params, &params); err != nil {
			t.Fatal(err)
		}
		progress, _ := message.Notification("notifications/progress", map[string]any{"progressToken": params.Meta.Token, "progress": i})
		if err := first.Write(progress); err != nil {
			t.Fatal(err)
		}
		if got, want := <-lines, `"progressToken":"p"`; !strings.Contains(got, want) {
			t.Errorf("got %s", got)
		}
		answer, _ := m.Answer(map[string]any{"n": i})
		if err := first.Write(answer); err != nil {
			t.Fatal(err)
		}
		if got, want := <-lines, `{"jsonrpc":"2.0","id":1,"result":{"n":`+string(rune('0'+i))+`}}`; got != want {
			t.Errorf("got %s", got)
		}
	}
	header["Authorization"] = "Bearer token-b"
	answer := postStateless(t, t.Context(), server.URL, strings.Replace(body, "wait", "x", 1), map[string]string{"Mcp-Protocol-Version": "2026-07-28",
		"Mcp-Method": "tools/call", "Mcp-Name": "x", "Authorization": "Bearer token-b"})
	text, _ := io.ReadAll(answer.Body)
	answer.Body.Close()
	if !strings.Contains(string(text), `"caller":"ben"`) {
		t.Errorf("got %s", text)
	}
	echo.mu.Lock()
	defer echo.mu.Unlock()
	if !slices.Equal(echo.sessions, []string{"", ""}) {
		t.Errorf("got sessions %q", echo.sessions)
	}
}

// A client that leaves cancels its request, and a subscription has the id that its client knows.
func TestStatelessStreams(t *testing.T) {
	echo := newEcho()
	server := start(t, listen.Options{Serve: echo.serve})
	ctx, leave := context.WithCancel(t.Context())
	header := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"}
	lines := make(chan string, 10)
	go func() {
		answer := postStateless(t, ctx, server.URL, `{"jsonrpc":"2.0","id":"mine","method":"subscriptions/listen","params":{"x":"wait",`+stateless+`}}}`, header)
		defer answer.Body.Close()
		for in := bufio.NewScanner(answer.Body); in.Scan(); {
			if data, ok := strings.CutPrefix(in.Text(), "data: "); ok {
				lines <- data
			}
		}
	}()
	m, caller := <-echo.waiting, <-echo.caller
	for _, id := range []jsontext.Value{jsontext.Value("99"), m.ID} { // the first one is of no request
		changed, _ := message.Notification("notifications/tools/list_changed", map[string]any{"_meta": map[string]any{"io.modelcontextprotocol/subscriptionId": id}})
		if err := caller.Write(changed); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-lines; !strings.Contains(got, `"io.modelcontextprotocol/subscriptionId":"mine"`) {
		t.Errorf("got %s", got)
	}
	leave()
	if got := <-echo.gone; !strings.Contains(string(got.Params), `"requestId":`+string(m.ID)) {
		t.Errorf("got %s", got.Params)
	}
}

// After a client has seen a tool's schema, the headers that repeat its arguments are checked.
func TestMirroredArguments(t *testing.T) {
	server := start(t, listen.Options{Serve: func(_ context.Context, caller gateway.Caller, _ string) error {
		for {
			m, err := caller.Read()
			if err != nil {
				return nil
			}
			_ = caller.Write(message.Message{ID: m.ID, Result: jsontext.Value(`{"tools":[{"name":"w","inputSchema":{"properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}`)})
		}
	}})
	post := func(method, params string, header ...string) int {
		all := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method}
		for i := 0; i < len(header); i += 2 {
			all[header[i]] = header[i+1]
		}
		answer := postStateless(t, t.Context(), server.URL, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+stateless+`}}}`, all)
		answer.Body.Close()
		return answer.StatusCode
	}
	const call = `"name":"w","arguments":{"region":"Île"},`
	if got := post("tools/call", call, "Mcp-Name", "w"); got != 200 {
		t.Errorf("before the list: status %d", got)
	}
	if got := post("tools/list", ""); got != 200 {
		t.Errorf("list: status %d", got)
	}
	for value, want := range map[string]int{"=?base64?w45sZQ==?=": 200, "=?base64?w45sZQ?=": 400, "Ile": 400} {
		if got := post("tools/call", call, "Mcp-Name", "w", "Mcp-Param-Region", value); got != want {
			t.Errorf("%s: status %d", value, got)
		}
	}
	if got := post("tools/call", call, "Mcp-Name", "w"); got != 400 {
		t.Errorf("no header: status %d", got)
	}
	if got := post("tools/call", `"name":"w","arguments":{},`, "Mcp-Name", "w"); got != 200 {
		t.Errorf("no argument: status %d", got)
	}
}

// The address that a request was sent to is no foreign origin; the same name with another port is.
func TestOwnOrigin(t *testing.T) {
	server := start(t, listen.Options{Serve: newEcho().serve})
	host := strings.TrimSuffix(strings.TrimPrefix(server.URL, "http://"), listen.Path)
	header := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}
	for origin, want := range map[string]int{"http://" + host: 200, "http://127.0.0.1:1": 403, "http://evil.example": 403} {
		header["Origin"] = origin
		answer := postStateless(t, t.Context(), server.URL, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+stateless+`}}}`, header)
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s: status %d", origin, answer.StatusCode)
		}
	}
}
