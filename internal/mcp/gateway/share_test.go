package gateway

import (
	"slices"
	"testing"
)

// Two servers are one for the client: names say whose a tool is, and hidden tools are in no list.
func TestSeveralServers(t *testing.T) {
	o := newOffice(t)
	o.decisions["mcp.bank.pay"] = "deny"
	shop, bank := &counter{}, &counter{}
	config := newConfig(t, o, organizations[0], t.TempDir())
	config.Servers = []Server{{"shop", sdkServer(shop.server())}, {"bank", sdkServer(bank.server())}}
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
