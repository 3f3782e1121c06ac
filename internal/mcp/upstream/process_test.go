package upstream

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/childprocess"
	"github.com/agentledger/agentledger/internal/mcp/message"
)

func sh(script string) Command {
	return Command{Command: childprocess.Command{Args: []string{"sh", "-c", script}, Patience: 50 * time.Millisecond}}
}

// A line that is no message is skipped by the reader's next call, and a server that stays is ended.
func TestProcess(t *testing.T) {
	script := `echo noise; read line; echo "$line"; trap "" TERM; while :; do sleep 1; done`
	conn, err := sh(script).Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Write(message.Message{Method: "m"}); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(); !errors.Is(err, message.ErrMalformed) {
		t.Errorf("noise: got %v", err)
	}
	if m, err := conn.Read(); err != nil || m.Method != "m" {
		t.Errorf("got %+v, %v", m, err)
	}
	if err := conn.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if _, err := conn.Read(); err == nil {
		t.Error("the process still writes")
	}
	if _, err := (Command{Command: childprocess.Command{Args: []string{"/no/such/program"}}}).Start(t.Context()); err == nil {
		t.Error("a program that is not there has started")
	}
}

func TestReadEvents(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []string
		err  error
	}{
		"two events":  {"event: message\ndata: {\"a\":1}\n\n: comment\n\nid: 1\r\ndata:x\r\n\r\n", []string{`{"a":1}`, "x"}, nil},
		"only an id":  {"id: 7\nretry: 5\ndata:\n\n", []string{""}, nil},
		"two lines":   {"data: a\ndata: b\n\n", []string{"a\nb"}, nil},
		"no end":      {"data: a\n", nil, nil},
		"empty":       {"", nil, nil},
		"too long":    {"data: " + strings.Repeat("x", 200) + "\n\n", nil, message.ErrTooLong},
		"in sum long": {strings.Repeat("data: xxxxxxxxxx\n", 20) + "\n", nil, message.ErrTooLong},
	} {
		var got []string
		var failed error
		for e, err := range readEvents(io.NopCloser(strings.NewReader(tc.text)), 100) {
			if err != nil {
				failed = err
				break
			}
			got = append(got, string(e.data))
		}
		if !slices.Equal(got, tc.want) || !errors.Is(failed, tc.err) {
			t.Errorf("%s: got %q, %v", name, got, failed)
		}
	}
}
