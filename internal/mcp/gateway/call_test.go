package gateway

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentledger/agentledger/id"
)

// startCounter returns a gateway in front of a counter for one of the organizations.
func startCounter(t testing.TB, o *office, org id.Organization, change func(*Config)) (*counter, *mcp.ClientSession) {
	t.Helper()
	c := &counter{}
	config := newConfig(t, o, org, t.TempDir())
	config.Servers = []Server{{"shop", sdkServer(c.server())}}
	change(&config)
	g, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	startSending(t, g)
	return c, connectCaller(t, g, nil)
}

func callTool(t testing.TB, s *mcp.ClientSession, name string, arguments map[string]any) *mcp.CallToolResult {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

// Each organization's ledger has the calls that went through its own gateway.
func TestCallIsRecorded(t *testing.T) {
	o := newOffice(t)
	o.decisions["mcp.shop.pay"] = "deny"
	for i, org := range organizations {
		c, caller := startCounter(t, o, org, func(*Config) {})
		for range i + 1 {
			if r := callTool(t, caller, "add", map[string]any{"a": 1, "b": 2}); r.IsError || !strings.Contains(textOf(r), `"sum":3`) {
				t.Errorf("add: got %+v", r)
			}
		}
		r := callTool(t, caller, "pay", map[string]any{"a": 1})
		if !r.IsError || !strings.Contains(textOf(r), "as told (rule r of policy p), event evt_") {
			t.Errorf("pay: got %q", textOf(r))
		}
		if r := callTool(t, caller, "fail", map[string]any{"a": 1}); !r.IsError || textOf(r) != "no funds" {
			t.Errorf("fail: got %q", textOf(r))
		}
		if c.count() != i+1 {
			t.Errorf("got %d calls, want %d", c.count(), i+1)
		}
		want := []string{"intent mcp.shop.fail", "intent mcp.shop.pay", "result mcp.shop.fail error"}
		for range i + 1 {
			want = append(want, "intent mcp.shop.add", "result mcp.shop.add ok")
		}
		slices.Sort(want)
		if got := o.toldResults(org, i+2); !slices.Equal(got, want) {
			t.Errorf("ledger of %d: got %v, want %v", i, got, want)
		}
	}
}

func TestCallWithoutServiceIsNotMade(t *testing.T) {
	o := newOffice(t)
	c, caller := startCounter(t, o, organizations[0], func(*Config) {})
	o.set(func() { o.down = true })
	if r := callTool(t, caller, "add", map[string]any{"a": 1}); !r.IsError || !strings.HasPrefix(textOf(r), "Not done, because there is no decision") {
		t.Errorf("got %q", textOf(r))
	}
	o.set(func() { o.down = false })
	if r := callTool(t, caller, "add", map[string]any{"a": 1}); r.IsError || c.count() != 1 {
		t.Errorf("got %q, %d calls", textOf(r), c.count())
	}
}

// An equal call belongs to the approval that waits, another one to none.
func TestCallWaitsForPeople(t *testing.T) {
	o := newOffice(t)
	o.decisions["mcp.shop.pay"] = "allow_with_obligation"
	c, caller := startCounter(t, o, organizations[0], func(c *Config) { c.Wait = 20 * time.Millisecond })
	for range 2 {
		if r := callTool(t, caller, "pay", map[string]any{"a": 1}); !strings.Contains(textOf(r), "waits for apr_1,") || !r.IsError {
			t.Fatalf("got %q", textOf(r))
		}
	}
	if r := callTool(t, caller, "pay", map[string]any{"a": 2}); !strings.Contains(textOf(r), "waits for apr_2,") {
		t.Errorf("other arguments: got %q", textOf(r))
	}
	o.set(func() { o.votes["apr_1"], o.votes["apr_2"] = "approved", "denied" })
	if r := callTool(t, caller, "pay", map[string]any{"a": 1}); r.IsError || c.count() != 1 {
		t.Errorf("approved: got %q, %d calls", textOf(r), c.count())
	}
	if r := callTool(t, caller, "pay", map[string]any{"a": 2}); !strings.Contains(textOf(r), "not today") || c.count() != 1 {
		t.Errorf("denied: got %q", textOf(r))
	}
	for _, a := range []int{1, 2} { // both approvals are over: these are new calls
		if r := callTool(t, caller, "pay", map[string]any{"a": a}); !strings.Contains(textOf(r), "waits for apr_"+string(rune('2'+a))) {
			t.Errorf("%d again: got %q", a, textOf(r))
		}
	}
}
