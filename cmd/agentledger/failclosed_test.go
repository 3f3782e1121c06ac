package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var shopFile = flag.String("shop", "", "be the MCP server of TestProgramsFailClosed, with a line in this file for each call")

// beShop serves the tool buy over standard input and output.
func beShop(file string) int {
	s := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "buy"}, func(_ context.Context, _ *mcp.CallToolRequest, arguments map[string]any) (*mcp.CallToolResult, any, error) {
		if arguments["item"] == "nothing" {
			return nil, nil, errors.New("there is nothing to buy")
		}
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = fmt.Fprintln(f, "bought")
			f.Close()
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "bought"}}}, nil, err
	})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 0
}

// front is a proxy of a service. While it has a status, it answers events itself.
type front struct {
	address string
	status  atomic.Int64
	body    string
}

func newFront(t *testing.T, service string) *front {
	target, err := url.Parse(service)
	if err != nil {
		t.Fatal(err)
	}
	f, proxy := &front{}, httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch status := int(f.status.Load()); {
		case status == 0 || r.URL.Path != "/v1/ingest/events":
			proxy.ServeHTTP(w, r)
		case status == -1: // no answer
			panic(http.ErrAbortHandler)
		default:
			w.WriteHeader(status)
			_, _ = w.Write([]byte(f.body))
		}
	}))
	t.Cleanup(server.Close)
	f.address = server.URL
	return f
}

// actor is an agent's programs that act, each with its files in a folder.
type actor struct {
	t           *testing.T
	dir         string // of the files that show what ran
	state       string // of the journals
	environment []string
}

func newActor(t *testing.T, address string, org foundedOrganization, state string) *actor {
	t.Helper()
	a := &actor{t: t, dir: t.TempDir(), state: state}
	key := filepath.Join(a.dir, "key")
	if err := os.WriteFile(key, []byte(org.Agent.PrivateB64), 0o600); err != nil {
		t.Fatal(err)
	}
	a.environment = []string{"APS_URL=" + address, "APS_TOKEN=" + org.IngestKey.Secret, "APS_ORG=" + org.OrganizationID.String(),
		"APS_AGENT=" + string(org.Agent.AgentID), "APS_KEY_ID=" + string(org.Agent.KeyID), "APS_KEY_FILE=" + key,
		"APS_JOURNAL=" + filepath.Join(state, "acts")}
	return a
}

// ran returns how often something ran.
func (a *actor) ran(name string) int {
	text, err := os.ReadFile(filepath.Join(a.dir, name))
	if os.IsNotExist(err) {
		return 0
	}
	if err != nil {
		a.t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

// run runs aps with an input.
func (a *actor) run(input string, args ...string) (output string, exit int) {
	a.t.Helper()
	command := exec.Command(filepath.Join(programs, "aps"), args...)
	command.Env, command.Stdin = append(os.Environ(), a.environment...), strings.NewReader(input)
	out, err := command.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		a.t.Fatal(err)
	}
	return string(out), command.ProcessState.ExitCode()
}

func (a *actor) hook(n int) (output string, exit int) {
	input := fmt.Sprintf(`{"session_id":%q,"tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"toolu_%d"}`, a.dir, n)
	return a.run(input, "hook", "pre", "--wait", "3s")
}

func (a *actor) wrap() (output string, exit int) {
	return a.run("", "wrap", "--wait", "3s", "--", "sh", "-c", "echo ran >> "+filepath.Join(a.dir, "wrapped"))
}

// gateway starts aps mcp in front of the shop, under a name.
func (a *actor) gateway(name string) *mcp.ClientSession {
	a.t.Helper()
	program, err := os.Executable()
	if err != nil {
		a.t.Fatal(err)
	}
	command := exec.Command(filepath.Join(programs, "aps"), "mcp", "--state", filepath.Join(a.state, "mcp"), name, "--",
		program, "-shop", filepath.Join(a.dir, "bought"))
	command.Env, command.Stderr = append(os.Environ(), a.environment...), a.t.Output()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(a.t.Context(), &mcp.CommandTransport{Command: command}, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { s.Close() })
	return s
}

func (a *actor) buy(s *mcp.ClientSession) (text string, failed bool) {
	a.t.Helper()
	r, err := s.CallTool(a.t.Context(), &mcp.CallToolParams{Name: "buy", Arguments: map[string]any{"item": "tea"}})
	if err != nil {
		a.t.Fatal(err)
	}
	return r.Content[0].(*mcp.TextContent).Text, r.IsError
}

// wantRefused checks that nothing ran in any of the three ways, and that each explains why and what to do.
func (a *actor) wantRefused(s *mcp.ClientSession, what string, n int, want ...string) {
	a.t.Helper()
	says := func(program, text, begin string) {
		for _, part := range append(want, begin) {
			if !strings.Contains(text, part) {
				a.t.Errorf("%s: %s: got %q, want %q", what, program, text, part)
			}
		}
		for _, secret := range a.environment {
			if value := strings.TrimPrefix(secret, "APS_TOKEN="); value != secret && strings.Contains(text, value) {
				a.t.Errorf("%s: %s: the message contains the token: %q", what, program, text)
			}
		}
	}
	text, exit := a.hook(n)
	if says("hook", text, "The tool call is not decided, so it must not run: "); exit != 2 {
		a.t.Errorf("%s: hook: status %d", what, exit)
	}
	text, exit = a.wrap()
	if says("wrap", text, "aps: The program is not decided, so it must not run: "); exit != 126 || a.ran("wrapped") != 0 {
		a.t.Errorf("%s: wrap: status %d, ran %d times", what, exit, a.ran("wrapped"))
	}
	text, failed := a.buy(s)
	if says("mcp", text, "Not done, because there is no decision: "); !failed || a.ran("bought") != 0 {
		a.t.Errorf("%s: mcp: ran %d times", what, a.ran("bought"))
	}
}

// wantDone checks that each of the three ways works.
func (a *actor) wantDone(s *mcp.ClientSession, what string, n int) {
	a.t.Helper()
	if text, exit := a.hook(n); exit != 0 {
		a.t.Errorf("%s: hook: status %d, %s", what, exit, text)
	}
	if text, exit := a.wrap(); exit != 0 || a.ran("wrapped") != 1 {
		a.t.Errorf("%s: wrap: status %d, ran %d times, %s", what, exit, a.ran("wrapped"), text)
	}
	if text, failed := a.buy(s); failed || text != "bought" || a.ran("bought") != 1 {
		a.t.Errorf("%s: mcp: ran %d times, %s", what, a.ran("bought"), text)
	}
}

// The real programs, with anything except a permission: nothing runs, and the message explains what to do. Afterwards,
// with the real service's responses, everything runs.
func TestProgramsFailClosed(t *testing.T) {
	p := startProcess(t, t.TempDir())
	org := p.found(t.Context(), "red", nil)
	for name, tc := range map[string]struct {
		status int
		body   string
		want   []string
	}{
		"no answer":     {-1, ``, []string{"EOF", "Make the same call again later."}},
		"401":           {401, `{"error":"Invalid API key"}`, []string{"401 Invalid API key", "Check the ingest key"}},
		"403":           {403, `{"error":"The ingest key is not for this agent"}`, []string{"403 The ingest key is not for this agent", "Check the ingest key"}},
		"clock off":     {422, `{"error":"emitted_at is too far in the future"}`, []string{"422 emitted_at", "Set the clock of this machine."}},
		"429":           {429, `{"error":"Monthly event limit reached","code":"plan_limit"}`, []string{"429 Monthly event limit reached", "raise its plan's limit"}},
		"500":           {500, `{"error":"Internal error","request_id":"r1"}`, []string{"500 Internal error (request r1)", "Make the same call again later."}},
		"service clock": {503, `{"error":"The service's clock is being checked","code":"clock"}`, []string{"503 The service's clock is being checked [clock]", "Make the same call again later."}},
		"wrong answer":  {201, `{"event_id":"evt_other","status":"created","sequence_num":1,"chain_valid":true}`, []string{"names another event", "Check the address of the service"}},
		"another page":  {200, `<html>`, []string{"Check the address of the service"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFront(t, p.main)
			a := newActor(t, f.address, org, t.TempDir())
			s := a.gateway("shop")
			f.body = tc.body
			f.status.Store(int64(tc.status))
			a.wantRefused(s, name, 1, tc.want...)
			f.status.Store(0)
			a.wantDone(s, name, 2)
		})
	}
	t.Run("down", func(t *testing.T) {
		t.Parallel()
		a := newActor(t, "http://127.0.0.1:1", org, t.TempDir())
		a.wantRefused(a.gateway("shop"), "down", 1, "connection refused", "Make the same call again later.")
	})
	t.Run("time-out", func(t *testing.T) { // the limit of aps mcp is tested in its package
		t.Parallel()
		silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // without it, the server does not notice that the client is gone
			<-r.Context().Done()
		}))
		t.Cleanup(silent.Close)
		a := newActor(t, silent.URL, org, t.TempDir())
		begun := time.Now()
		if text, exit := a.hook(1); exit != 2 || !strings.Contains(text, "deadline exceeded. Make the same call again later.") {
			t.Errorf("hook: status %d, %s", exit, text)
		}
		if text, exit := a.wrap(); exit != 126 || a.ran("wrapped") != 0 || !strings.Contains(text, "Make the same call again later.") {
			t.Errorf("wrap: status %d, %s", exit, text)
		}
		if took := time.Since(begun); took > 25*time.Second {
			t.Errorf("took %v", took)
		}
	})
}
