package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentledger/agentledger/interop"
)

// shopVariable makes this test's program an MCP server, whose calls are lines of the file that it names.
const shopVariable = "SHOP_CALLS"

func TestMain(m *testing.M) {
	if file := os.Getenv(shopVariable); file != "" {
		if err := newShop(file).Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	if os.Getenv(ownVariable) != "" {
		if err := serveOwn(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	if dir := os.Getenv(worksVariable); dir != "" {
		if err := serveWorks(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	os.Exit(m.Run())
}

type order struct {
	Item string `json:"item,omitempty"`
}

// newShop returns a server with tools that are called, ask the client, wait, and die.
func newShop(file string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	var notes sync.Mutex
	serve := func(name string, answer func(context.Context, *mcp.CallToolRequest, order) (string, error)) {
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(ctx context.Context, r *mcp.CallToolRequest, in order) (*mcp.CallToolResult, any, error) {
			notes.Lock()
			f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				_, err = fmt.Fprintln(f, name, in.Item)
				f.Close()
			}
			notes.Unlock()
			if err != nil {
				return nil, nil, err
			}
			text, err := answer(ctx, r, in)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, err
		})
	}
	same := func(_ context.Context, _ *mcp.CallToolRequest, in order) (string, error) {
		return "sold " + in.Item, nil
	}
	serve("buy", same)
	serve("pay", same)
	serve("steal", same)
	serve("ask", func(ctx context.Context, r *mcp.CallToolRequest, in order) (string, error) {
		//lint:ignore SA1019 requests of servers to clients must pass, as long as the protocol has them
		asked, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "How many " + in.Item + "?"})
		if err != nil {
			return "", err
		}
		//lint:ignore SA1019 as above
		sampled, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 1, Messages: []*mcp.SamplingMessage{
			{Role: "user", Content: &mcp.TextContent{Text: in.Item}}}})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(asked.Action, " ", sampled.Model), nil
	})
	serve("hang", func(ctx context.Context, _ *mcp.CallToolRequest, _ order) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	serve("die", func(context.Context, *mcp.CallToolRequest, order) (string, error) {
		os.Exit(3)
		return "", nil
	})
	return s
}

// deployment is a service with a policy, and a gateway's configuration with two shops.
type deployment struct {
	*interop.Service
	dir    string
	config string
}

const policyText = `{"policy_id": "shops", "name": "Shops", "default": "allow", "rules": [
	{"rule_id": "no-theft", "tool": "mcp.*.steal", "decision": "deny", "reason": "Nobody steals"},
	{"rule_id": "people", "tool": "mcp.*.pay", "decision": "allow_with_obligation", "reason": "A person decides"}]}`

// deployPolicy starts a service with a policy.
func deployPolicy(t *testing.T, text string) *deployment {
	t.Helper()
	d := &deployment{Service: interop.Start(t), dir: t.TempDir()}
	policy := filepath.Join(d.dir, "policy.json")
	must(t, os.WriteFile(policy, []byte(text), 0o600))
	push := exec.Command(filepath.Join(d.Programs, "aps"), "policy", "push", "--activate", policy)
	push.Env = d.person()
	if output, err := push.CombinedOutput(); err != nil {
		t.Fatalf("policy: %v\n%s", err, output)
	}
	return d
}

func deploy(t *testing.T, settings map[string]any) *deployment {
	t.Helper()
	d := deployPolicy(t, policyText)
	program, err := os.Executable()
	must(t, err)
	servers := map[string]any{}
	for _, name := range []string{"left", "right"} {
		server := map[string]any{"command": []string{program}, "env": map[string]string{shopVariable: d.calls(name)}}
		if more, ok := settings[name].(map[string]any); ok { // members of one server
			maps.Copy(server, more)
			delete(settings, name)
		}
		servers[name] = server
	}
	settings["servers"] = servers
	text, err := json.Marshal(settings)
	must(t, err)
	d.config = filepath.Join(d.dir, "gateway.json")
	must(t, os.WriteFile(d.config, text, 0o600))
	return d
}

func (d *deployment) calls(server string) string { return filepath.Join(d.dir, server+".calls") }

// made returns the calls that a server has had.
func (d *deployment) made(t *testing.T, server string) []string {
	text, err := os.ReadFile(d.calls(server))
	if os.IsNotExist(err) {
		return nil
	}
	must(t, err)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// person returns the environment of the organization's owner.
func (d *deployment) person() []string {
	return append(os.Environ(), "APS_URL=http://"+d.Address, "APS_EMAIL=ops@acme.example",
		"APS_PASSWORD=a password for tests")
}

// dial starts aps with arguments and returns the client of its standard input and output.
func dial(t *testing.T, d *deployment, environment []string, o *mcp.ClientOptions, arguments ...string) *mcp.ClientSession {
	t.Helper()
	return dialRevision(t, d, "", environment, o, arguments...)
}

// dialRevision is dial in a revision of the protocol, "" for the latest.
func dialRevision(
	t *testing.T, d *deployment, revision string, environment []string, o *mcp.ClientOptions, arguments ...string,
) *mcp.ClientSession {
	t.Helper()
	command := exec.Command(filepath.Join(d.Programs, "aps"), append([]string{"mcp"}, arguments...)...)
	command.Env, command.Stderr = environment, os.Stderr
	c := mcp.NewClient(&mcp.Implementation{Name: "caller", Version: "1"}, o)
	session, err := c.Connect(t.Context(), &mcp.CommandTransport{Command: command}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	must(t, err)
	t.Cleanup(func() { session.Close() })
	return session
}

func (d *deployment) dialGateway(t *testing.T, o *mcp.ClientOptions, flags ...string) *mcp.ClientSession {
	t.Helper()
	flags = append([]string{"--config", d.config, "--state", filepath.Join(d.dir, "state")}, flags...)
	return dial(t, d, d.Environment(), o, flags...)
}

func call(t *testing.T, s *mcp.ClientSession, name string, arguments any) (text string, r *mcp.CallToolResult) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		return "error: " + err.Error(), &mcp.CallToolResult{IsError: true}
	}
	return contentOf(r), r
}

func contentOf(r *mcp.CallToolResult) (text string) {
	for _, c := range r.Content {
		if part, ok := c.(*mcp.TextContent); ok {
			text += part.Text
		}
	}
	return text
}

// Two servers behind one gateway: hidden tools, denied calls, and questions of servers to the client.
func TestSeveralServers(t *testing.T) {
	d := deploy(t, map[string]any{"hide": []string{"mcp.*.die"}, "hide_denied": true})
	s := dialRevision(t, d, "2025-11-25", d.Environment(), &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if !strings.HasPrefix(r.Params.Message, "How many ") {
				return nil, fmt.Errorf("another question: %s", r.Params.Message)
			}
			return &mcp.ElicitResult{Action: "decline"}, nil
		},
		//lint:ignore SA1019 requests of servers to clients must pass, as long as the protocol has them
		CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			text := r.Params.Messages[0].Content.(*mcp.TextContent).Text
			return &mcp.CreateMessageResult{Model: "model of " + text, Role: "assistant", Content: &mcp.TextContent{Text: "ok"}}, nil
		},
	}, "--config", d.config, "--state", filepath.Join(d.dir, "state"))
	checkNames(t, s)
	if text, r := call(t, s, "left__steal", order{"a"}); !r.IsError || !strings.HasPrefix(text, "Denied: Nobody steals (rule no-theft of policy shops), event evt_") {
		t.Errorf("hidden and denied: got %q", text)
	}
	for _, server := range []string{"left", "right"} {
		if text, r := call(t, s, server+"__buy", order{server}); r.IsError || text != "sold "+server {
			t.Errorf("%s: got %q", server, text)
		}
		if text, _ := call(t, s, server+"__ask", order{server}); text != "decline model of "+server {
			t.Errorf("%s asks: got %q", server, text)
		}
		if got, want := d.made(t, server), []string{"buy " + server, "ask " + server}; !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", server, got, want)
		}
	}
}

func checkNames(t *testing.T, s *mcp.ClientSession) {
	t.Helper()
	var names []string
	for tool, err := range s.Tools(t.Context(), nil) {
		must(t, err)
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	want := []string{"left__ask", "left__buy", "left__hang", "left__pay", "right__ask", "right__buy", "right__hang", "right__pay"}
	if !slices.Equal(names, want) {
		t.Errorf("tools: got %v, want %v", names, want)
	}
}

// Two servers behind one gateway in the revision without a handshake, where the client listens for changes at both.
func TestSeveralServersWithoutHandshake(t *testing.T) {
	d := deploy(t, map[string]any{"hide": []string{"mcp.*.die"}, "hide_denied": true})
	s := d.dialGateway(t, nil)
	checkNames(t, s)
	if got := s.InitializeResult().ProtocolVersion; got != "2026-07-28" {
		t.Errorf("revision %s", got)
	}
	for _, server := range []string{"left", "right"} {
		if text, r := call(t, s, server+"__buy", order{server}); r.IsError || text != "sold "+server {
			t.Errorf("%s: got %q", server, text)
		}
	}
}

// A call waits for people with progress, is told to come again, finds its question again, and runs once. The people
// decide through aps mcp approvals.
func TestPeopleDecide(t *testing.T) {
	d := deploy(t, map[string]any{"wait": "1500ms"})
	var progress sync.Map
	s := d.dialGateway(t, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			progress.Store(r.Params.Message, true)
		},
	})
	params := &mcp.CallToolParams{Name: "left__pay", Arguments: order{"rent"}}
	params.SetProgressToken("p1")
	first, err := s.CallTool(t.Context(), params)
	must(t, err)
	text := contentOf(first)
	approval := regexp.MustCompile(`waits for (apr_[0-9a-zA-Z]+)`).FindStringSubmatch(text)
	if approval == nil || !first.IsError || !strings.Contains(text, "Call again with the same arguments") {
		t.Fatalf("got %q", text)
	}
	if _, told := progress.Load("waits for people: " + approval[1]); !told {
		t.Error("no progress was told")
	}
	if text, _ := call(t, s, "left__pay", order{"rent"}); !strings.Contains(text, approval[1]) {
		t.Errorf("again: got %q, want %s", text, approval[1])
	}
	if text, _ := call(t, s, "left__pay", order{"food"}); strings.Contains(text, approval[1]) || !strings.Contains(text, "waits for apr_") {
		t.Errorf("other arguments: got %q", text)
	}
	desk := dial(t, d, d.person(), nil, "approvals")
	listed, _ := call(t, desk, "list_approvals", map[string]any{})
	if strings.Count(listed, `"approval_id"`) != 2 {
		t.Errorf("queue: got %s", listed)
	}
	shown, _ := call(t, desk, "show_approval", map[string]any{"approval_id": approval[1]})
	var question struct {
		Digest string `json:"action_digest"`
	}
	must(t, json.Unmarshal([]byte(shown), &question))
	vote := map[string]any{"approval_id": approval[1], "vote": "approve", "action_digest": strings.Repeat("0", 64)}
	if text, r := call(t, desk, "vote_on_approval", vote); !r.IsError {
		t.Errorf("vote on another action: got %q", text)
	}
	vote["action_digest"] = question.Digest
	if text, r := call(t, desk, "vote_on_approval", vote); r.IsError {
		t.Fatalf("vote: got %q", text)
	}
	if text, r := call(t, s, "left__pay", order{"rent"}); r.IsError || text != "sold rent" {
		t.Errorf("approved: got %q", text)
	}
	if got := d.made(t, "left"); !slices.Equal(got, []string{"pay rent"}) {
		t.Errorf("calls: got %q", got)
	}
}

// The person for whom a call is made does not decide on it.
func TestFourEyes(t *testing.T) {
	d := deploy(t, map[string]any{"wait": "100ms", "principal": map[string]any{"meta": "user", "fixed": "ops@acme.example"}})
	s := d.dialGateway(t, nil)
	desk := dial(t, d, d.person(), nil, "approvals")
	for _, tc := range []struct {
		user  string // "" for the fixed principal
		voted bool
	}{{"somebody", true}, {"", false}} {
		params := &mcp.CallToolParams{Name: "left__pay", Arguments: order{"for " + tc.user}}
		if tc.user != "" {
			params.Meta = mcp.Meta{"user": tc.user}
		}
		r, err := s.CallTool(t.Context(), params)
		must(t, err)
		approval := regexp.MustCompile(`apr_[0-9a-zA-Z]+`).FindString(contentOf(r))
		shown, _ := call(t, desk, "show_approval", map[string]any{"approval_id": approval})
		var question struct {
			Digest    string `json:"action_digest"`
			Principal string `json:"actor_principal"`
		}
		must(t, json.Unmarshal([]byte(shown), &question))
		text, voted := call(t, desk, "vote_on_approval",
			map[string]any{"approval_id": approval, "vote": "approve", "action_digest": question.Digest})
		if voted.IsError == tc.voted {
			t.Errorf("call for %q: got %q", tc.user, text)
		}
	}
}

// A cancelled call and a call whose server dies end as unknown, and the gateway goes on.
func TestCallsThatEnd(t *testing.T) {
	d := deploy(t, map[string]any{})
	s := d.dialGateway(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "left__hang", Arguments: order{"a"}})
		ended <- err
	}()
	for d.made(t, "left") == nil {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("the cancelled call has ended well")
	}
	text, r := call(t, s, "left__die", order{"b"})
	if !r.IsError || !strings.Contains(text, "how it ended is not known") {
		t.Errorf("die: got %q", text)
	}
	if text, r := call(t, s, "right__buy", order{"c"}); r.IsError || text != "sold c" {
		t.Errorf("the other server: got %q", text)
	}
	s.Close()
	unknown := 0
	for range 100 { // results are sent beside the calls
		if unknown = countEvents(t, d, `"status":"unknown"`); unknown == 2 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if unknown != 2 {
		t.Errorf("got %d results of unknown end, want 2", unknown)
	}
}

// countEvents counts the events whose public documents have a text.
func countEvents(t *testing.T, d *deployment, text string) (n int) {
	t.Helper()
	list := exec.Command(filepath.Join(d.Programs, "aps"), "events", "list", "--ndjson", "--limit", "1000")
	list.Env = d.person()
	output, err := list.Output()
	must(t, err)
	for _, line := range strings.Split(strings.TrimSpace(string(output)), "\n") {
		var e struct {
			EventID string `json:"event_id"`
		}
		must(t, json.Unmarshal([]byte(line), &e))
		r, err := http.Get("http://" + d.Address + "/v1/public/orgs/acme/verify/" + e.EventID)
		must(t, err)
		var bundle struct {
			Envelope string `json:"envelope"`
		}
		must(t, json.NewDecoder(r.Body).Decode(&bundle))
		r.Body.Close()
		if strings.Contains(bundle.Envelope, text) {
			n++
		}
	}
	return n
}

// A program holds the key: the gateway's environment names no key file.
func TestSignerProgram(t *testing.T) {
	d := deploy(t, map[string]any{"record": []map[string]any{{"tools": "mcp.left.*", "output": true}}})
	key := filepath.Join(d.dir, "moved key")
	must(t, os.Rename(filepath.Join(d.Programs, "key"), strings.ReplaceAll(key, " ", "-")))
	signer := filepath.Join(d.Programs, "aps") + " signer --key-id " + string(d.Agent.KeyID) + " --key-file " + strings.ReplaceAll(key, " ", "-")
	environment := append(slices.DeleteFunc(d.Environment(), func(v string) bool { return strings.HasPrefix(v, "APS_KEY_FILE=") }), "APS_SIGNER="+signer)
	s := dial(t, d, environment, nil, "--config", d.config, "--state", filepath.Join(d.dir, "state"))
	for _, server := range []string{"left", "right"} {
		if text, r := call(t, s, server+"__buy", order{"tea"}); r.IsError || text != "sold tea" {
			t.Errorf("%s: got %q", server, text)
		}
	}
	s.Close()
	recorded := 0
	for range 100 {
		if recorded = countEvents(t, d, `"content":[{"text":"sold tea","type":"text"}]`); recorded == 1 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if recorded != 1 {
		t.Errorf("got %d results recorded whole, want 1", recorded)
	}
}
