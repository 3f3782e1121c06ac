package gateway

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentledger/agentledger/internal/mcp/message"
)

// Two servers are one for the client: names say whose a tool is, and hidden tools are in no list.
func TestSeveralServers(t *testing.T) {
	o := newOffice(t)
	o.decisions["mcp.bank.pay"] = "deny"
	shop, bank := &counter{}, &counter{}
	config := newConfig(t, o, organizations[0], t.TempDir())
	config.Servers = []Server{{Name: "shop", Connect: sdkServer(shop.server())}, {Name: "bank", Connect: sdkServer(bank.server())}}
	config.Hide, config.HideDenied = []string{"mcp.*.fail"}, true
	g, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	startSending(t, g)
	caller := connectCaller(t, g, nil)
	var names []string
	for tool, err := range caller.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	if want := []string{"bank__add", "shop__add", "shop__pay"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	for name, isError := range map[string]bool{"shop__add": false, "bank__add": false, "shop__pay": false, "bank__pay": true} {
		if r := callTool(t, caller, name, map[string]any{"a": 1}); r.IsError != isError {
			t.Errorf("%s: got %q", name, textOf(r))
		}
	}
	if shop.count() != 2 || bank.count() != 1 {
		t.Errorf("got %d and %d calls", shop.count(), bank.count())
	}
	want := []string{"intent mcp.bank.add", "intent mcp.bank.pay", "intent mcp.shop.add", "intent mcp.shop.pay",
		"result mcp.bank.add ok", "result mcp.shop.add ok", "result mcp.shop.pay ok"}
	if got := o.toldResults(organizations[0], 3); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if err := caller.Ping(t.Context(), nil); err != nil {
		t.Errorf("ping: %v", err)
	}
}

// A web page sees the servers that allow its origin. One server is passed on as it is, and without one there is no session.
func TestServersByOrigin(t *testing.T) {
	o := newOffice(t)
	shop, bank := &counter{}, &counter{}
	config := newConfig(t, o, organizations[0], t.TempDir())
	config.Servers = []Server{
		{Name: "shop", Connect: sdkServer(shop.server()), Origins: []string{"https://app.example", "https://shop.example"}},
		{Name: "bank", Connect: sdkServer(bank.server()), Origins: []string{"https://app.example"}},
	}
	g, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	both := []string{"bank__add", "bank__fail", "bank__pay", "shop__add", "shop__fail", "shop__pay"}
	for origin, want := range map[string][]string{"": both, "https://app.example": both, "https://shop.example": {"add", "fail", "pay"}} {
		s, err := dialGateway(t, g, nil, origin)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for tool, err := range s.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, tool.Name)
		}
		slices.Sort(names)
		if !slices.Equal(names, want) {
			t.Errorf("%q: got %q, want %q", origin, names, want)
		}
		r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "bank__add", Arguments: sum{A: 1}})
		if reached := err == nil && !r.IsError; reached != (len(want) == 6) {
			t.Errorf("%q: a call of the bank: %v", origin, reached)
		}
	}
	if bank.count() != 2 || shop.count() != 0 {
		t.Errorf("got %d and %d calls", bank.count(), shop.count())
	}
	if err := g.Serve(t.Context(), message.NewLines(strings.NewReader(""), io.Discard, 0), "https://evil.example"); err == nil {
		t.Error("a page that no server allows has a session")
	}
}
