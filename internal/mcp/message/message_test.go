package message_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/mcp/message"
)

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		line string
		want string // as it is written again, "" for refused
	}{
		"request": {`{"jsonrpc":"2.0","id":9007199254740993,"method":"m","params":{"b":1.50,"a":"\u00e9"}}`,
			`{"jsonrpc":"2.0","id":9007199254740993,"method":"m","params":{"b":1.50,"a":"\u00e9"}}`},
		"response":         {`{"jsonrpc":"2.0","id":"x","result":{}}`, `{"jsonrpc":"2.0","id":"x","result":{}}`},
		"error":            {`{"jsonrpc":"2.0","id":null,"error":{"code":1}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":1}}`},
		"spaces":           {"{ \"jsonrpc\":\"2.0\", \"method\":\"m\", \"params\": {\"a\" : 1} }", `{"jsonrpc":"2.0","method":"m","params":{"a":1}}`},
		"name twice":       {`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`, ""},
		"name twice below": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}`, ""},
		"other letters":    {`{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}`, ""},
		"batch":            {`[{"jsonrpc":"2.0","id":1,"method":"tools/call"}]`, ""},
		"two values":       {`{"jsonrpc":"2.0","method":"m"}{"jsonrpc":"2.0","method":"m"}`, ""},
		"no version":       {`{"id":1,"method":"m"}`, ""},
		"id is an object":  {`{"jsonrpc":"2.0","id":{},"method":"m"}`, ""},
		"result and error": {`{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`, ""},
		"not UTF-8":        {"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}", ""},
	} {
		m, err := message.Parse([]byte(tc.line))
		if tc.want == "" {
			if !errors.Is(err, message.ErrMalformed) {
				t.Errorf("%s: got %v, %+v", name, err, m)
			}
			continue
		}
		got, writeErr := m.AppendLine(nil)
		if err != nil || writeErr != nil || string(got) != tc.want+"\n" {
			t.Errorf("%s: got %s, %v, %v", name, got, err, writeErr)
		}
	}
}

// A tool call whose arguments alone can't be read is told apart, so that its model gets an answer.
func TestUnreadableArguments(t *testing.T) {
	begin := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"get","arguments":`
	for line, want := range map[string]string{
		begin + `{"a":1,"a":2}}}`:         `Member "a" appears twice`,
		begin + `{"a":[{"b":1,"b":2}]}}}`: `Member "b" appears twice`,
		begin + `{"a":"\ud800"}}}`:        "half of a surrogate pair",
		begin + "{\"a\":\"\xff\"}}}":      "not valid UTF-8",
		begin + `{"\udc00":1}}}`:          "half of a surrogate pair",

		begin + `{"a":01}}}`:                   "",
		begin + `{"a":1,"a":2},"name":"put"}}`: "",
		begin + `{"a":1,"a":2}},"id":8}`:       "",
		begin + `{"a":1,"a":2}}} {}`:           "",
		begin + `{},"_meta":{"a":1,"a":2}}}`:   "",
		`{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{"name":"get","arguments":{"a":1,"a":2}}}`: "",
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"get","arguments":{"a":1,"a":2}}}`:         "",
		`{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{"name":"get","arguments":{"a":1,"a":2}}}`: "",
	} {
		_, err := message.Parse([]byte(line))
		unreadable, ok := errors.AsType[*message.CallError](err)
		if !errors.Is(err, message.ErrMalformed) || ok != (want != "") || ok && (string(unreadable.ID) != "7" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", line, err, want)
		}
	}
}

// A line beyond the bound, or one that is no message, leaves the next one readable.
func TestLinesAreBounded(t *testing.T) {
	good := `{"jsonrpc":"2.0","method":"m"}`
	long := strings.Repeat("x", 200_000)
	l := message.NewLines(strings.NewReader(long+"\n"+good+"\nlog line\n\n"+good), io.Discard, 100)
	for i, want := range []error{message.ErrTooLong, nil, message.ErrMalformed, nil, io.EOF} {
		if m, err := l.Read(); !errors.Is(err, want) || want == nil && m.Method != "m" {
			t.Errorf("line %d: got %v, want %v", i, err, want)
		}
	}
}

func TestWriteKeepsLines(t *testing.T) {
	m, err := message.Parse([]byte("{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"a\":\n[1,\r\n2.0]}}"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := message.NewLines(nil, &out, 0).Write(m); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), `{"jsonrpc":"2.0","method":"m","params":{"a":[1,2.0]}}`+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
