package listen_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The SDK's listener without the SDK's server refuses methods that it has no types for, such as those of tasks, and
// requests of 2026-07-28.
func TestSDKListenerRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		line, version string
		status        int
	}{
		"call": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`, "2025-11-25", http.StatusOK},
		"task": {`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"a"}}`, "2025-11-25", http.StatusBadRequest},
		"2026": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
			"2026-07-28", http.StatusBadRequest},
	} {
		transport := &mcp.StreamableServerTransport{SessionID: "s"}
		conn, err := transport.Connect(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if m, err := conn.Read(context.Background()); err == nil {
				_ = conn.Write(context.Background(), &jsonrpc.Response{ID: m.(*jsonrpc.Request).ID, Result: []byte(`{}`)})
			}
		}()
		server := httptest.NewServer(transport)
		r, err := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(tc.line))
		if err != nil {
			t.Fatal(err)
		}
		for header, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Protocol-Version": tc.version, "Mcp-Method": "tools/call", "Mcp-Name": "a"} {
			r.Header.Set(header, value)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != tc.status {
			t.Errorf("%s: status %d", name, answer.StatusCode)
		}
		conn.Close()
		server.CloseClientConnections()
		server.Close()
	}
}
