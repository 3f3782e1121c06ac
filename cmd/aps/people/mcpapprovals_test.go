package people

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentledger/agentledger/internal/mcp/message"
)

const shownDigest = "00000000000000000000000000000000000000000000000000000000000000aa"

// serveConsole answers for two organizations by their tokens. Red's user may not vote.
func serveConsole(w http.ResponseWriter, r *http.Request) {
	who := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	body, _ := io.ReadAll(r.Body)
	switch {
	case who != "red" && who != "blue":
		http.Error(w, `{"error":"Sign in"}`, http.StatusUnauthorized)
	case r.Method == http.MethodGet && r.URL.Path == "/v1/console/approvals":
		_, _ = io.WriteString(w, `{"approvals":[{"approval_id":"apr_`+who+`"}],"next":null}`)
	case r.URL.Path != "/v1/console/approvals/apr_"+who && r.URL.Path != "/v1/console/approvals/apr_"+who+"/votes":
		http.Error(w, `{"error":"Not found"}`, http.StatusNotFound)
	case r.Method == http.MethodPost && who == "red":
		http.Error(w, `{"error":"You cannot decide on your own request"}`, http.StatusForbidden)
	case r.Method == http.MethodPost && !strings.Contains(string(body), shownDigest):
		http.Error(w, `{"error":"Another action"}`, http.StatusConflict)
	default:
		_, _ = io.WriteString(w, `{"approval_id":"apr_`+who+`","payload":{"note":"a\u001bb"}}`)
	}
}

func TestApprovalsByMCP(t *testing.T) {
	console := httptest.NewServer(http.HandlerFunc(serveConsole))
	t.Cleanup(console.Close)
	vote := func(name, vote, digest string) map[string]any {
		return map[string]any{"approval_id": name, "vote": vote, "action_digest": digest, "comment": "fine"}
	}
	for name, tc := range map[string]struct {
		token, tool string
		arguments   map[string]any
		want        string // part of the text
		isError     bool
	}{
		"list":           {"blue", "list_approvals", map[string]any{}, "apr_blue", false},
		"list of red":    {"red", "list_approvals", map[string]any{"status": "approved"}, "apr_red", false},
		"show":           {"blue", "show_approval", map[string]any{"approval_id": "apr_blue"}, `a\u001bb`, false},
		"another's":      {"blue", "show_approval", map[string]any{"approval_id": "apr_red"}, "404 Not found", true},
		"path":           {"blue", "show_approval", map[string]any{"approval_id": "../events"}, "404 Not found", true},
		"approve":        {"blue", "vote_on_approval", vote("apr_blue", "approve", shownDigest), "apr_blue", false},
		"own request":    {"red", "vote_on_approval", vote("apr_red", "approve", shownDigest), "own request", true},
		"another action": {"blue", "vote_on_approval", vote("apr_blue", "approve", strings.Repeat("0", 64)), "Another action", true},
		"no digest":      {"blue", "vote_on_approval", vote("apr_blue", "approve", "x"), "action_digest", true},
		"no vote":        {"blue", "vote_on_approval", vote("apr_blue", "maybe", shownDigest), "approve or deny", true},
		"signed out":     {"", "list_approvals", map[string]any{}, "401 Sign in", true},
	} {
		s := newSession(console.URL)
		s.token = tc.token
		if s.token == "" {
			s.token = "nobody"
		}
		requests, toServer := io.Pipe()
		answers, toClient := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			ended <- newApprovalServer(s.newest).Serve(t.Context(), message.NewLines(requests, toClient, 0))
			toClient.Close()
		}()
		caller, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).
			Connect(t.Context(), &mcp.IOTransport{Reader: answers, Writer: toServer}, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := caller.CallTool(t.Context(), &mcp.CallToolParams{Name: tc.tool, Arguments: tc.arguments})
		if err != nil || r.IsError != tc.isError || !strings.Contains(r.Content[0].(*mcp.TextContent).Text, tc.want) {
			t.Errorf("%s: got %+v, %v", name, r, err)
		}
		caller.Close()
		if err := <-ended; err != nil {
			t.Errorf("%s: the server ended with %v", name, err)
		}
	}
}
