package message_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentledger/agentledger/internal/mcp/message"
)

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// passSDK returns a line as a connection of the SDK reads and writes it.
func passSDK(t *testing.T, line string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	transport := &mcp.IOTransport{Reader: io.NopCloser(strings.NewReader(line + "\n")), Writer: nopCloser{&out}}
	conn, err := transport.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m, err := conn.Read(t.Context())
	if err == nil {
		err = conn.Write(t.Context(), m)
	}
	return strings.TrimSpace(out.String()), err
}

// The SDK keeps the bytes of params and results, but not ids, unknown members and errors, and it takes messages that
// two readers understand differently. All of its transports read messages in the same way, so the gateway reads its own.
// If a case fails with a later SDK, the reason for own code is gone.
func TestSDKChangesMessages(t *testing.T) {
	for name, tc := range map[string]struct {
		line string
		sdk  string // as the SDK passes it on; "" for refused
		own  bool   // this package passes it on unchanged
	}{
		"params":            {`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1.50,"b":"\u0041<","n":9007199254740993}}`, "same", true},
		"result":            {`{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","x":[1.0],"requestState":"s"}}`, "same", true},
		"large id":          {`{"jsonrpc":"2.0","id":9007199254740993,"method":"m"}`, `{"jsonrpc":"2.0","id":9007199254740992,"method":"m"}`, true},
		"fraction":          {`{"jsonrpc":"2.0","id":1.5,"method":"m"}`, `{"jsonrpc":"2.0","id":1,"method":"m"}`, false},
		"null id":           {`{"jsonrpc":"2.0","id":null,"method":"tools/call"}`, `{"jsonrpc":"2.0","method":"tools/call"}`, false},
		"member of error":   {`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m","more":2}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`, true},
		"answer to no id":   {`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}`, "", true},
		"unknown member":    {`{"jsonrpc":"2.0","id":1,"method":"m","more":2}`, `{"jsonrpc":"2.0","id":1,"method":"m"}`, false},
		"two methods":       {`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, false},
		"two arguments":     {`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"a":2}}`, "same", false},
		"result and error":  {`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}`, "same", false},
		"half a character":  {`{"jsonrpc":"2.0","method":"m\ud800"}`, `{"jsonrpc":"2.0","method":"m` + "\ufffd" + `"}`, false},
		"a batch of a call": {`[{"jsonrpc":"2.0","id":1,"method":"tools/call"}]`, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, false},
		"a line of a log":   {`listening on port 80`, "", false},
	} {
		if tc.sdk == "same" {
			tc.sdk = tc.line
		}
		if got, err := passSDK(t, tc.line); got != tc.sdk || (err == nil) != (tc.sdk != "") {
			t.Errorf("%s: the SDK passes on %s, %v", name, got, err)
		}
		m, err := message.Parse([]byte(tc.line))
		own, _ := m.AppendLine(nil)
		if got := strings.TrimSpace(string(own)); (err == nil && got == tc.line) != tc.own {
			t.Errorf("%s: own code passes on %s, %v", name, got, err)
		}
	}
}
