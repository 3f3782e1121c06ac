package gateway

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentledger/agentledger/id"
)

const receiptText = "agentledger/receipt/v1\na note"

// An approved call reaches the server with its grant and the approved payload, and the receipt of its answer is recorded.
func TestReceiptIsRecorded(t *testing.T) {
	for name, tc := range map[string]struct {
		receipt any
		want    bool
	}{
		"a receipt":       {receiptText, true},
		"the longest":     {"agentledger/receipt/v1\n" + strings.Repeat("x", maxReceipt-23), true},
		"a longer one":    {"agentledger/receipt/v1\n" + strings.Repeat("x", maxReceipt-22), false},
		"another text":    {"R-1009", false},
		"a number":        {7, false},
		"an object":       {map[string]any{"note": receiptText}, false},
		"no receipt":      {nil, false},
		"another version": {"agentledger/receipt/v2\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.decisions["mcp.shop.pay"] = "allow_with_obligation"
			var meta map[string]any
			server := (&counter{}).server()
			server.AddTool(&mcp.Tool{Name: "pay", InputSchema: map[string]any{"type": "object"}},
				func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					meta = r.Params.Meta
					return &mcp.CallToolResult{Meta: mcp.Meta{metaReceipt: tc.receipt}, Content: []mcp.Content{&mcp.TextContent{Text: "paid"}}}, nil
				})
			c := newConfig(t, o, organizations[0], t.TempDir())
			c.Servers = []Server{{Name: "shop", Connect: sdkServer(server)}}
			g, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			startSending(t, g)
			caller := connectCaller(t, g, nil)
			o.set(func() { o.votes["apr_1"] = "approved" })
			if r := callTool(t, caller, "pay", map[string]any{"a": 1}); textOf(r) != "paid" {
				t.Fatalf("got %q", textOf(r))
			}
			intent := string(o.firstEvent(organizations[0]).Payload)
			if meta[metaGrant] != "grant of apr_1" || meta[metaPayload] != intent {
				t.Errorf("the server got %v, want the grant of %s", meta, intent)
			}
			got := o.payloadOfResult(organizations[0])
			if strings.Contains(got, `"receipt":"agentledger/receipt/v1`) != tc.want || strings.Contains(got, `"receipt":`) != tc.want {
				t.Errorf("recorded %s, want a receipt: %v", got, tc.want)
			}
		})
	}
}

// A server gets the intent of a call without an approval if the rule of the tool asks for receipts, and otherwise nothing.
func TestReceiptIsAskedFor(t *testing.T) {
	for _, asks := range []bool{false, true} {
		o := newOffice(t)
		var meta map[string]any
		server := (&counter{}).server()
		server.AddTool(&mcp.Tool{Name: "pay", InputSchema: map[string]any{"type": "object"}},
			func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				meta = r.Params.Meta
				return &mcp.CallToolResult{Meta: mcp.Meta{metaReceipt: receiptText}}, nil
			})
		c := newConfig(t, o, organizations[0], t.TempDir())
		c.Servers = []Server{{Name: "shop", Connect: sdkServer(server)}}
		c.Rules = []Rule{{Tools: "mcp.shop.*", Receipt: asks}}
		g, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		startSending(t, g)
		callTool(t, connectCaller(t, g, nil), "pay", map[string]any{"a": 1})
		intent := o.firstEvent(organizations[0])
		var wantIntent, wantPayload any
		if asks {
			wantIntent, wantPayload = fmt.Sprintf("%s %s %s", organizations[0], intent.AgentID, intent.EventID), string(intent.Payload)
		}
		if meta[metaIntent] != wantIntent || meta[metaPayload] != wantPayload || meta[metaGrant] != nil {
			t.Errorf("asks %t: the server got %v, want %v %v", asks, meta, wantIntent, wantPayload)
		}
		if got := o.payloadOfResult(organizations[0]); !strings.Contains(got, `"receipt":"agentledger/receipt/v1`) {
			t.Errorf("recorded %s", got)
		}
	}
}

// payloadOfResult returns the payload of the first result.
func (o *office) payloadOfResult(org id.Organization) string {
	o.toldResults(org, 1)
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.events[org] {
		if e.Call().Phase == "result" {
			return string(e.Payload)
		}
	}
	return ""
}
