package monitor

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// readKeyStatement returns the first published vector of a statement of a log key: the bundle and the key that signed it.
func readKeyStatement(t *testing.T) (*verify.Bundle, tlog.VerifierKey) {
	t.Helper()
	text, err := os.ReadFile("../testdata/vectors/key-statement.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors []struct {
			Input struct{ Bundle, Keys string }
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	b, err := verify.ParseBundle([]byte(file.Vectors[0].Input.Bundle))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := verify.ParseKeys([]byte(file.Vectors[0].Input.Keys))
	if err != nil {
		t.Fatal(err)
	}
	return b, keys[0].Key
}

// A monitor that knows as many keys of a log as it may refuses the next rotation, and the error names the bound.
func TestTooManyKeys(t *testing.T) {
	b, key := readKeyStatement(t)
	next, err := tlog.ParseVerifierKey(b.LogKeys[len(b.LogKeys)-1])
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		known int
		want  error
	}{{verify.MaxKnownKeys - 1, nil}, {verify.MaxKnownKeys, verify.ErrTooManyKeys}} {
		m := &Monitor{Options: Options{Log: new(client.Tiles), Keys: slices.Repeat([]tlog.VerifierKey{key}, tc.known)}}
		s := &state{statements: map[tlog.KeyHash]statementAnswer{next.Hash(): {bundle: b}}}
		err := m.followKeys(t.Context(), s, []byte(b.Checkpoint))
		if !errors.Is(err, tc.want) || (len(m.accepted) == 1) != (tc.want == nil) {
			t.Errorf("%d known keys: got %d accepted keys, %v, want %v", tc.known, len(m.accepted), err, tc.want)
		}
		if err != nil && !strings.Contains(err.Error(), "at most 256 keys of a log") {
			t.Errorf("%d known keys: error %q does not name the bound", tc.known, err)
		}
	}
}
