package gateway

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/internal/jcs"
)

// hangingServer has the counter's tools and one that waits until release is closed or the call is cancelled.
func hangingServer(c *counter, entered chan<- string, release <-chan struct{}) *mcp.Server {
	s := c.server()
	mcp.AddTool(s, &mcp.Tool{Name: "hang"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ sum) (*mcp.CallToolResult, any, error) {
		entered <- "entered"
		select {
		case <-release:
		case <-ctx.Done():
			entered <- "cancelled"
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "released"}}}, nil, nil
	})
	return s
}

// startNeighbours returns two sessions of one gateway.
func startNeighbours(t *testing.T, o *office, change func(*Config)) (c *counter, entered chan string, release chan struct{}, sessions [2]*mcp.ClientSession) {
	t.Helper()
	c, entered, release = &counter{}, make(chan string, 10), make(chan struct{})
	config := newConfig(t, o, organizations[0], t.TempDir())
	config.Servers = []Server{{Name: "shop", Connect: sdkServer(hangingServer(c, entered, release))}}
	change(&config)
	g, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	startSending(t, g)
	for i := range sessions {
		sessions[i] = connectCaller(t, g, nil)
	}
	return c, entered, release, sessions
}

// callBeside makes a call in a goroutine and returns its text.
func callBeside(t *testing.T, s *mcp.ClientSession, name string, a int) <-chan string {
	text := make(chan string, 1)
	go func() {
		r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: map[string]any{"a": a}})
		if err != nil {
			text <- err.Error()
			return
		}
		text <- textOf(r)
	}()
	return text
}

func TestCallsAreBounded(t *testing.T) {
	o := newOffice(t)
	_, entered, release, sessions := startNeighbours(t, o, func(c *Config) { c.Bounds.Calls = 2 })
	first, second := callBeside(t, sessions[0], "hang", 1), callBeside(t, sessions[0], "hang", 1)
	for range 2 {
		<-entered
	}
	if r := callTool(t, sessions[0], "add", map[string]any{"a": 1}); !strings.HasPrefix(textOf(r), "Not done: too many tool calls") {
		t.Errorf("beyond the bound: got %q", textOf(r))
	}
	if r := callTool(t, sessions[1], "add", map[string]any{"a": 1}); r.IsError {
		t.Errorf("the neighbour: got %q", textOf(r))
	}
	close(release)
	if a, b := <-first, <-second; a != "released" || b != "released" {
		t.Errorf("got %q and %q", a, b)
	}
}

func TestWaitingIsBounded(t *testing.T) {
	o := newOffice(t)
	o.decisions["mcp.shop.pay"] = "allow_with_obligation"
	c, _, _, sessions := startNeighbours(t, o, func(c *Config) { c.Bounds.Waiting, c.Wait = 1, time.Minute })
	first := callBeside(t, sessions[0], "pay", 1)
	o.await(func() bool { return o.polled["apr_1"] })
	if r := callTool(t, sessions[0], "pay", map[string]any{"a": 2}); !strings.Contains(textOf(r), "waits for apr_2,") {
		t.Errorf("beyond the bound: got %q", textOf(r))
	}
	neighbour := callBeside(t, sessions[1], "pay", 3)
	o.await(func() bool { return len(o.asked) == 3 })
	o.set(func() { o.votes["apr_1"], o.votes["apr_3"] = "approved", "approved" })
	if a, b := <-first, <-neighbour; !strings.Contains(a, "sum") || !strings.Contains(b, "sum") || c.count() != 2 {
		t.Errorf("got %q and %q, %d calls", a, b, c.count())
	}
}

func TestQuestionsAreBounded(t *testing.T) {
	o := newOffice(t)
	o.decisions["mcp.shop.pay"] = "allow_with_obligation"
	_, _, _, sessions := startNeighbours(t, o, func(c *Config) {
		var err error
		if c.Questions, err = OpenQuestions(filepath.Join(t.TempDir(), "questions.json"), 1); err != nil {
			t.Fatal(err)
		}
		c.Wait = 10 * time.Millisecond
	})
	for i, want := range []string{"waits for apr_1,", "too many calls wait for people", "waits for apr_1,"} {
		if r := callTool(t, sessions[i%2], "pay", map[string]any{"a": i % 2}); !strings.Contains(textOf(r), want) {
			t.Errorf("call %d: got %q, want %q", i, textOf(r), want)
		}
	}
	o.await(func() bool { return o.votes["apr_2"] == "cancelled" })
	if r := callTool(t, sessions[1], "add", map[string]any{"a": 1}); r.IsError {
		t.Errorf("another tool: got %q", textOf(r))
	}
}

// After a restart the equal call goes on with the approval, and the approval is used once.
func TestQuestionsSurviveRestart(t *testing.T) {
	o := newOffice(t)
	o.decisions["mcp.shop.pay"] = "allow_with_obligation"
	dir, c := t.TempDir(), &counter{}
	for run, want := range []string{"waits for apr_1,", `"sum":1`} {
		config := newConfig(t, o, organizations[0], dir)
		config.Servers, config.Wait = []Server{{Name: "shop", Connect: sdkServer(c.server())}}, 10*time.Millisecond
		if run == 1 {
			config.Wait = time.Minute
		}
		g, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		caller := connectCaller(t, g, nil)
		if r := callTool(t, caller, "pay", map[string]any{"a": 1}); !strings.Contains(textOf(r), want) {
			t.Errorf("run %d: got %q", run, textOf(r))
		}
		caller.Close()
		if err := config.Journal.Close(); err != nil {
			t.Fatal(err)
		}
		o.set(func() { o.votes["apr_1"] = "approved" })
	}
	if c.count() != 1 || len(o.asked) != 1 {
		t.Errorf("%d calls, %d questions", c.count(), len(o.asked))
	}
}

// A cancelled call is over for the client, the server is told, and the ledger has it as unknown.
func TestCallIsCancelled(t *testing.T) {
	o := newOffice(t)
	_, entered, _, sessions := startNeighbours(t, o, func(*Config) {})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := sessions[0].CallTool(ctx, &mcp.CallToolParams{Name: "hang", Arguments: map[string]any{"a": 1}})
		ended <- err
	}()
	<-entered
	cancel()
	if err := <-ended; err == nil {
		t.Error("the call has not ended")
	}
	if got := <-entered; got != "cancelled" {
		t.Errorf("the server: got %q", got)
	}
	want := []string{"intent mcp.shop.hang", "result mcp.shop.hang unknown"}
	if got := o.toldResults(organizations[0], 1); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Calls whose readers could disagree, or that can't be recorded, reach no server and no ledger.
func TestCallsAreRefused(t *testing.T) {
	o := newOffice(t)
	c, caller := startCounter(t, o, organizations[0], func(c *Config) { c.Principal = Principal{Meta: "example.com/user"} })
	named := mcp.Meta{"example.com/user": "ana@acme.example"}
	for name, tc := range map[string]struct {
		meta      mcp.Meta
		arguments any
		want      string
	}{
		"no principal": {nil, map[string]any{"a": 1}, "names no principal"},
		"number":       {named, jsontext.Value(`{"a":1e10000}`), "an exponent beyond 9999: send it as a string"},
		"numbers":      {named, map[string]any{"a": slices.Repeat([]uint64{1<<53 + 1}, 7000)}, "at most 204800 can be recorded whole"},
		"nesting":      {named, jsontext.Value(`{"a":` + strings.Repeat("[", jcs.MaxDepth-2) + "9007199254740993" + strings.Repeat("]", jcs.MaxDepth-2) + `}`), "deeper than"},
		"letters":      {named, map[string]any{"a": 1, "A": 2}, "case of letters"},
		"no object":    {named, []int{1}, "arguments"},
		"reserved":     {named, map[string]any{"phase": 1, "argument_phase": 2}, "same name"},
		"size":         {named, map[string]any{"a": 1, "text": strings.Repeat("z", 300_000)}, "at most 204800 can be recorded whole"},
	} {
		r, err := caller.CallTool(t.Context(), &mcp.CallToolParams{Meta: tc.meta, Name: "add", Arguments: tc.arguments})
		got := fmt.Sprint(err)
		if err == nil && r.IsError {
			got = textOf(r)
		}
		if !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %s", name, got)
		}
	}
	if c.count() != 0 || len(o.told(organizations[0])) != 0 {
		t.Errorf("%d calls, ledger %v", c.count(), o.told(organizations[0]))
	}
	r, err := caller.CallTool(t.Context(), &mcp.CallToolParams{Meta: named, Name: "add", Arguments: map[string]any{"a": 1}})
	if err != nil || r.IsError || o.firstEvent(organizations[0]).ActorPrincipal != "ana@acme.example" {
		t.Errorf("got %+v, %v", r, err)
	}
}

// A service that never answers holds no call for longer than the bound, and other requests pass meanwhile.
func TestServiceThatHangs(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c, _, _, sessions := startNeighbours(t, newOffice(t), func(config *Config) {
		config.Decide = 300 * time.Millisecond
		config.Client, err = client.New(client.Config{BaseURL: "http://" + silent.Addr().String(), Token: "t", Timeout: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
	})
	waiting := callBeside(t, sessions[0], "add", 1)
	if _, err := sessions[0].ListTools(t.Context(), nil); err != nil {
		t.Error(err)
	}
	const want = "Not done, because there is no decision: the service has not decided in time. Make the same call again later."
	if got := <-waiting; got != want || c.count() != 0 {
		t.Errorf("got %q, %d calls", got, c.count())
	}
}
