package mcp

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentledger/agentledger/interop"
)

// listen starts the gateway of a deployment with a listener, and returns its address.
func (d *deployment) listen(t *testing.T) string {
	t.Helper()
	return listenHTTP(t, d.Service, "--config", d.config, "--state", filepath.Join(d.dir, "state"))
}

// listenHTTP starts a gateway with a listener and a token. It ends with the test.
func listenHTTP(t *testing.T, s *interop.Service, arguments ...string) string {
	t.Helper()
	return startListening(t, s, append(s.Environment(), "APS_MCP_TOKEN=a token of the gateway"), arguments...)
}

// listenOpen is listenHTTP without a token.
func listenOpen(t *testing.T, s *interop.Service, arguments ...string) string {
	t.Helper()
	return startListening(t, s, s.Environment(), arguments...)
}

func startListening(t *testing.T, s *interop.Service, environment []string, arguments ...string) string {
	t.Helper()
	command := exec.Command(filepath.Join(s.Programs, "aps"), append([]string{"mcp", "--listen", "127.0.0.1:0"}, arguments...)...)
	command.Env = environment
	diagnostics, err := command.StderrPipe()
	must(t, err)
	must(t, command.Start())
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
	})
	lines := bufio.NewReader(diagnostics)
	line, err := lines.ReadString('\n')
	must(t, err)
	go io.Copy(io.Discard, lines)
	return regexp.MustCompile(`http://\S+/mcp`).FindString(line)
}

// Over HTTP: a bearer token, origins, hosts, and sessions with separate processes.
func TestGatewayByHTTP(t *testing.T) {
	d := deploy(t, map[string]any{"allowed_origins": []string{"https://app.example"}})
	address := d.listen(t)
	for name, tc := range map[string]struct {
		headers map[string]string
		want    int
	}{
		"no token":       {map[string]string{}, http.StatusUnauthorized},
		"wrong token":    {map[string]string{"Authorization": "Bearer b token of the gateway"}, http.StatusUnauthorized},
		"strange origin": {map[string]string{"Authorization": "Bearer a token of the gateway", "Origin": "https://evil.example"}, http.StatusForbidden},
		"own origin":     {map[string]string{"Authorization": "Bearer a token of the gateway", "Origin": "https://app.example"}, http.StatusOK},
	} {
		r, err := http.NewRequest(http.MethodPost, address, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":`+
			`{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`))
		must(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		for header, value := range tc.headers {
			r.Header.Set(header, value)
		}
		answer, err := http.DefaultClient.Do(r)
		must(t, err)
		answer.Body.Close()
		if answer.StatusCode != tc.want {
			t.Errorf("%s: got %d, want %d", name, answer.StatusCode, tc.want)
		}
	}
	for i := range 2 {
		c := mcp.NewClient(&mcp.Implementation{Name: "caller", Version: "1"}, nil)
		s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: address, HTTPClient: &http.Client{Transport: bearer{}}}, nil)
		must(t, err)
		if text, r := call(t, s, "right__buy", order{fmt.Sprint(i)}); r.IsError || text != fmt.Sprint("sold ", i) {
			t.Errorf("session %d: got %q", i, text)
		}
		if i == 0 { // the end of this session's server is not felt by the other session
			call(t, s, "right__die", order{})
		}
		defer s.Close()
	}
}

// bearer adds the gateway's token to requests.
type bearer struct{}

func (bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer a token of the gateway")
	return http.DefaultTransport.RoundTrip(r)
}

// A web page sees the servers that allow its origin: one of both, both by the common list, or none. The official
// TypeScript client acts as the page.
func TestPagesSeeTheirServers(t *testing.T) {
	d := deploy(t, map[string]any{
		"allowed_origins": []string{"https://app.example"},
		"left":            map[string]any{"allowed_origins": []string{"https://app.example", "https://left.example"}},
	})
	address := d.listen(t)
	for origin, want := range map[string]string{
		"https://app.example":  `["left__buy","right__buy"]`,
		"https://left.example": `["buy"]`,
		"https://evil.example": "403",
		"":                     `["left__buy","right__buy"]`,
	} {
		page := exec.Command("node", "page.mjs", address, origin)
		page.Env = append(d.Environment(), "MCP_TOKEN=a token of the gateway")
		output, err := page.CombinedOutput()
		must(t, err)
		if got := strings.TrimSpace(string(output)); got != want {
			t.Errorf("%q: got %s, want %s", origin, got, want)
		}
	}
	if got, want := d.made(t, "left"), []string{"buy tea", "buy tea", "buy tea"}; !slices.Equal(got, want) {
		t.Errorf("left: got %q", got)
	}
	if got, want := d.made(t, "right"), []string{"buy tea", "buy tea"}; !slices.Equal(got, want) {
		t.Errorf("right: got %q", got)
	}
}
