package upstream

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The SDK's connection by HTTP sends no protocol version and opens no stream for the server's own messages, because only
// the SDK's client can tell it the negotiated version. One answer that can't be read ends the calls beside it.
func TestSDKConnectionByHTTP(t *testing.T) {
	versions, methods := make(chan string, 10), make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		methods <- r.Method
		versions <- r.Header.Get("Mcp-Protocol-Version")
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Mcp-Session-Id", "s")
		switch {
		case strings.Contains(string(body), "initialize"):
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}`)
		case strings.Contains(string(body), "broken"):
			fmt.Fprint(w, "an error page")
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	defer server.Close()
	conn, err := (&mcp.StreamableClientTransport{Endpoint: server.URL}).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	send := func(line string) error {
		m, err := jsonrpc.DecodeMessage([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		return conn.Write(t.Context(), m)
	}
	if err := send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if m, v := <-methods, <-versions; m != http.MethodPost || v != "" {
			t.Errorf("got %s with version %q", m, v)
		}
	}
	if err := send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"broken"}}`); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(t.Context()); err == nil {
		t.Error("the broken answer is a message")
	}
	if err := send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"fine"}}`); err == nil {
		t.Error("the connection goes on after an answer that can't be read")
	}
}
