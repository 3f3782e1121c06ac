package upstream

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/mcp/message"
)

// serveRemote returns a connection with a server.
func serveRemote(t *testing.T, serve http.HandlerFunc) Conn {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	conn, err := Remote{URL: server.URL, Headers: map[string]string{"Authorization": "Bearer upstream"}}.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func write(t *testing.T, conn Conn, line string) {
	t.Helper()
	m, err := message.Parse([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Write(m); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, conn Conn) message.Message {
	t.Helper()
	m, err := conn.Read()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A stream that the server ends during a call is resumed, so the call has its own end. One without an id is not.
func TestStreamIsResumed(t *testing.T) {
	resumes := make(chan http.Header, 10)
	conn := serveRemote(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		switch last := r.Header.Get("Last-Event-Id"); {
		case last == "a":
			resumes <- r.Header
			fmt.Fprint(w, "id: b\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n")
		case last == "b":
			resumes <- r.Header
			fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"done\":true}}\n\n")
		case last == "never":
			resumes <- r.Header
			fmt.Fprint(w, "retry: 1\ndata:\n\n")
		case strings.Contains(string(body), `"id":1`):
			fmt.Fprint(w, "id: a\nretry: 1\ndata:\n\n")
		case strings.Contains(string(body), `"id":2`):
			fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n")
		case strings.Contains(string(body), `"id":3`):
			fmt.Fprint(w, "id: never\nretry: 1\ndata:\n\n")
		}
	})
	write(t, conn, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`)
	if m := read(t, conn); m.Method != "notifications/progress" {
		t.Errorf("got %+v", m)
	}
	if m := read(t, conn); string(m.Result) != `{"done":true}` || m.Local {
		t.Errorf("got %+v", m)
	}
	for range 2 {
		if h := <-resumes; h.Get("Authorization") != "Bearer upstream" {
			t.Errorf("got headers %v", h)
		}
	}
	write(t, conn, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}`)
	read(t, conn)
	if m := read(t, conn); !m.Local {
		t.Errorf("a stream without an id: got %+v", m)
	}
	write(t, conn, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a"}}`)
	if m := read(t, conn); !m.Local || len(resumes) != maxResumes {
		t.Errorf("a stream that brings nothing: got %+v after %d attempts", m, len(resumes))
	}
}

// A request of the revision without sessions has headers that repeat its body, and an error of the server is an answer.
func TestStatelessRequest(t *testing.T) {
	requests := make(chan http.Header, 10)
	conn := serveRemote(t, func(w http.ResponseWriter, r *http.Request) {
		var m message.Message
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &m)
		requests <- r.Header
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.Contains(string(body), "tools/list"):
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"wétter","inputSchema":{"properties":{
				"region":{"type":"string","x-mcp-header":"Region"},"at":{"properties":{"hour":{"type":"integer","x-mcp-header":"Hour"}}},"left":{"type":"string","x-mcp-header":"Left"}}}},
				{"name":"bad","inputSchema":{"properties":{"x":{"type":"number","x-mcp-header":"X"}}}}]}}`)
		case strings.Contains(string(body), "prompts/get"):
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"no prompts"}}`)
		default:
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":2,"result":{}}`)
		}
	})
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
	for _, tc := range []struct {
		line    string
		headers map[string]string
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`,
			map[string]string{"Mcp-Method": "tools/list", "Mcp-Name": "", "Mcp-Protocol-Version": "2026-07-28"}},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wétter","arguments":{"region":"Île ","at":{"hour":7}},` + meta + `}}`,
			map[string]string{"Mcp-Method": "tools/call", "Mcp-Name": "=?base64?d8OpdHRlcg==?=", "Mcp-Param-Region": "=?base64?w45sZSA=?=",
				"Mcp-Param-Hour": "7", "Mcp-Param-Left": ""}},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"bad","arguments":{"x":1},` + meta + `}}`,
			map[string]string{"Mcp-Name": "bad", "Mcp-Param-X": ""}},
		{`{"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"=?base64?x?=",` + meta + `}}`,
			map[string]string{"Mcp-Name": "=?base64?PT9iYXNlNjQ/eD89?="}},
	} {
		write(t, conn, tc.line)
		m := read(t, conn)
		if m.Local || (m.Error != nil) != strings.Contains(tc.line, "prompts") {
			t.Errorf("%s: got %+v", tc.line, m)
		}
		got := <-requests
		for name, want := range tc.headers {
			if got.Get(name) != want {
				t.Errorf("%s: %s: got %q, want %q", tc.line, name, got.Get(name), want)
			}
		}
	}
}

// Without sessions a request is cancelled by the end of its stream.
func TestStatelessCancellation(t *testing.T) {
	entered, left, posts := make(chan bool, 1), make(chan bool, 1), make(chan string, 10)
	conn := serveRemote(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		posts <- string(body)
		entered <- true
		<-r.Context().Done()
		left <- true
	})
	write(t, conn, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`)
	<-entered
	write(t, conn, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	<-left
	if m := read(t, conn); !m.Local {
		t.Errorf("got %+v", m)
	}
	if len(posts) != 1 {
		t.Errorf("%d requests", len(posts))
	}
}
