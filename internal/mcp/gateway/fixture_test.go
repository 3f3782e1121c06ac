package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/mcp/message"
	"github.com/agentledger/agentledger/internal/mcp/upstream"
)

// office is a service that decides by tool, and keeps the events of each organization.
type office struct {
	url string

	mu        sync.Mutex
	decisions map[string]string // by tool; none: allow
	events    map[id.Organization][]*event.Envelope
	asked     []asked
	votes     map[string]string // status by approval
	polled    map[string]bool   // approvals that a call waits for
	down      bool
	changed   *sync.Cond
}

type asked struct {
	event  *event.Envelope
	name   string
	expiry time.Time
}

func newOffice(t testing.TB) *office {
	o := &office{decisions: map[string]string{}, events: map[id.Organization][]*event.Envelope{}, votes: map[string]string{}, polled: map[string]bool{}}
	o.changed = sync.NewCond(&o.mu)
	server := httptest.NewServer(o)
	t.Cleanup(server.Close)
	o.url = server.URL
	return o
}

func (o *office) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.changed.Broadcast()
	answer, status := o.serve(r, body)
	if err != nil || o.down {
		answer, status = map[string]any{"error": "down"}, 503
	}
	w.WriteHeader(status)
	_ = json.MarshalWrite(w, answer)
}

func (o *office) serve(r *http.Request, body []byte) (any, int) {
	path := strings.TrimPrefix(r.URL.Path, "/v1/ingest")
	switch {
	case o.down:
		return nil, 503
	case path == "/events":
		return o.take(body)
	case path == "/policy/evaluate":
		var q struct {
			Tool string `json:"tool_name"`
		}
		_ = json.Unmarshal(body, &q)
		return map[string]any{"decision": o.decide(q.Tool), "policy_id": "p", "rule_id": "r"}, 200
	}
	name := strings.Split(path, "/")[2]
	for _, a := range o.asked {
		if a.name != name {
			continue
		}
		if strings.HasSuffix(path, "/consume") {
			o.votes[name] = "consumed"
			return map[string]any{"status": "consumed", "grant": "grant of " + name}, 200
		}
		if strings.HasSuffix(path, "/cancel") {
			o.votes[name] = "cancelled"
		}
		o.polled[name] = true
		if r.URL.Query().Has("wait") && o.votes[name] == "pending" {
			o.mu.Unlock()
			time.Sleep(10 * time.Millisecond) // the client asks again
			o.mu.Lock()
		}
		return o.approval(a), 200
	}
	return nil, 404
}

func (o *office) decide(tool string) string {
	if d := o.decisions[tool]; d != "" {
		return d
	}
	return "allow"
}

func (o *office) approval(a asked) map[string]any {
	return map[string]any{"approval_id": a.name, "status": o.votes[a.name], "action_digest": grant.ActionOf(a.event).Digest(),
		"expires_at": id.InstantOf(a.expiry), "quorum": 1, "comment": "not today"}
}

func (o *office) take(body []byte) (any, int) {
	e, err := event.Parse(body, event.Options{})
	if err != nil {
		return map[string]any{"error": err.Error()}, 422
	}
	answer := map[string]any{"event_id": e.EventID, "status": "created", "chain_valid": true, "sequence_num": 1}
	known := slices.ContainsFunc(o.events[e.OrganizationID], func(k *event.Envelope) bool { return k.EventID == e.EventID })
	if !known {
		o.events[e.OrganizationID] = append(o.events[e.OrganizationID], e)
	}
	if e.Call().Phase != "intent" {
		return answer, 201
	}
	answer["policy_decision"], answer["policy_id"], answer["rule_id"] = o.decide(string(e.Tool)), "p", "r"
	answer["reason"] = "as told"
	if o.decide(string(e.Tool)) == "allow_with_obligation" {
		i := slices.IndexFunc(o.asked, func(a asked) bool { return a.event.EventID == e.EventID })
		if i < 0 {
			i = len(o.asked)
			o.asked = append(o.asked, asked{e, fmt.Sprintf("apr_%d", i+1), time.Now().Add(time.Hour)})
			if o.votes[o.asked[i].name] == "" { // a test may have voted before
				o.votes[o.asked[i].name] = "pending"
			}
		}
		answer["approval"] = o.approval(o.asked[i])
	}
	return answer, 201
}

// told returns the phase, tool and status of each event.
func (o *office) told(org id.Organization) (all []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.events[org] {
		var p struct {
			Status string `json:"status"`
		}
		_ = json.Unmarshal(e.Payload, &p)
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Call().Phase, e.Tool, p.Status)))
	}
	slices.Sort(all)
	return all
}

// firstEvent returns the first event of an organization.
func (o *office) firstEvent(org id.Organization) *event.Envelope {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.events[org][0]
}

// toldResults is told after that many results have come.
func (o *office) toldResults(org id.Organization, n int) []string {
	o.await(func() bool {
		results := 0
		for _, e := range o.events[org] {
			if e.Call().Phase == "result" {
				results++
			}
		}
		return results >= n
	})
	return o.told(org)
}

func startSending(t testing.TB, g *Gateway) {
	ctx, cancel := context.WithCancel(context.Background())
	var sending sync.WaitGroup
	sending.Go(func() { g.SendResults(ctx) })
	t.Cleanup(func() {
		cancel()
		sending.Wait()
	})
}

// await returns when the office is as wanted.
func (o *office) await(is func() bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !is() {
		o.changed.Wait()
	}
}

func (o *office) set(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
}

var organizations = [2]id.Organization{{1}, {2}}

// pipeConn is a server behind pipes.
type pipeConn struct {
	*message.Lines
	close func()
}

func (p pipeConn) Close() error { p.close(); return nil }

// connectPipes returns a connection with a server that serve runs.
func connectPipes(serve func(in io.ReadCloser, out io.WriteCloser)) upstream.Conn {
	fromGateway, toServer := io.Pipe()
	fromServer, toGateway := io.Pipe()
	go serve(fromGateway, toGateway)
	return pipeConn{message.NewLines(fromServer, toServer, 0), func() {
		toServer.Close()
		toGateway.Close()
	}}
}

// sdkServer connects with a server of the SDK.
func sdkServer(server *mcp.Server) func(context.Context) (upstream.Conn, error) {
	return func(context.Context) (upstream.Conn, error) {
		return connectPipes(func(in io.ReadCloser, out io.WriteCloser) {
			_ = server.Run(context.Background(), &mcp.IOTransport{Reader: in, Writer: out})
			out.Close()
		}), nil
	}
}

// newConfig returns the configuration of a gateway for one of the organizations.
func newConfig(t testing.TB, o *office, org id.Organization, dir string) Config {
	t.Helper()
	service, err := client.New(client.Config{BaseURL: o.url, Token: "t", Retry: client.Retry{Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	signer, err := client.NewSigner(client.Identity{Organization: org, Agent: "agt_1", Key: "key_1"}, make([]byte, edkey.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	journal, err := guard.OpenJournal(filepath.Join(dir, "journal"), guard.JournalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { journal.Close() })
	questions, err := OpenQuestions(filepath.Join(dir, "questions.json"), 0)
	if err != nil {
		t.Fatal(err)
	}
	return Config{Client: service, Signer: signer, Journal: journal, Questions: questions,
		OnError: func(err error) { t.Log(err) }}
}

// connectCaller serves a session and returns the SDK's client.
func connectCaller(t testing.TB, g *Gateway, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	session, err := dialGateway(t, g, o, "")
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func dialGateway(t testing.TB, g *Gateway, o *mcp.ClientOptions, origin string) (*mcp.ClientSession, error) {
	t.Helper()
	fromCaller, toGateway := io.Pipe()
	fromGateway, toCaller := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := g.Serve(context.Background(), message.NewLines(fromCaller, toCaller, 0), origin)
		toCaller.Close()
		ended <- err
	}()
	t.Cleanup(func() {
		toGateway.Close()
		if err := <-ended; err != nil {
			t.Errorf("session: %v", err)
		}
	})
	c := mcp.NewClient(&mcp.Implementation{Name: "caller", Version: "1"}, o)
	return c.Connect(t.Context(), &mcp.IOTransport{Reader: fromGateway, Writer: toGateway}, nil)
}

// counter is a server that counts its calls.
type counter struct {
	mu    sync.Mutex
	calls int
}

func (c *counter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

type sum struct {
	A int `json:"a"`
	B int `json:"b,omitempty"`
}

func (c *counter) server() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "counter", Version: "1"}, nil)
	add := func(_ context.Context, _ *mcp.CallToolRequest, in sum) (*mcp.CallToolResult, map[string]int, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls++
		return nil, map[string]int{"sum": in.A + in.B}, nil
	}
	mcp.AddTool(s, &mcp.Tool{Name: "add", Description: "adds"}, add)
	mcp.AddTool(s, &mcp.Tool{Name: "pay", Description: "pays"}, add)
	mcp.AddTool(s, &mcp.Tool{Name: "fail", Description: "fails"},
		func(context.Context, *mcp.CallToolRequest, sum) (*mcp.CallToolResult, any, error) {
			return nil, nil, fmt.Errorf("no funds")
		})
	return s
}

// textOf returns the texts of a result.
func textOf(r *mcp.CallToolResult) (all string) {
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			all += text.Text
		}
	}
	return all
}
