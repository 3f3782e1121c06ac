package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentledger/agentledger/internal/mcp/upstream"
)

// A server by HTTP gets the credentials of the configuration, and the caller does not.
func TestServerByHTTP(t *testing.T) {
	o := newOffice(t)
	c := &counter{}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return c.server() }, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer upstream-secret" {
			http.Error(w, "no upstream-secret", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	for i, credential := range []string{"Bearer upstream-secret", "Bearer wrong"} {
		config := newConfig(t, o, organizations[i], t.TempDir())
		config.Servers = []Server{{Name: "shop", Connect: upstream.Remote{URL: server.URL,
			Headers: map[string]string{"Authorization": credential}}.Connect}}
		g, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		caller, err := dialGateway(t, g, nil, "")
		if i == 1 {
			if err == nil || strings.Contains(err.Error(), "secret") {
				t.Errorf("wrong credentials: got %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if r := callTool(t, caller, "add", map[string]any{"a": 1, "b": 1}); r.IsError || c.count() != 1 {
			t.Errorf("got %q, %d calls", textOf(r), c.count())
		}
	}
}
