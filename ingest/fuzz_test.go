package ingest

import (
	"bytes"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

// An accepted value is a key, and quoting it gives the same key.
func FuzzIdempotencyKey(f *testing.F) {
	for _, seed := range []string{"", "a", `"a"`, `"`, `""`, `"a\"b"`, `a"b`, `"a";p=1`, `"\`, "a b", strings.Repeat("~", 256), "\x00", "é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		key, err := idempotencyKey(http.Header{"Idempotency-Key": {value}})
		if err != nil {
			return
		}
		if len(key) == 0 || len(key) > 255 || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Fatalf("%q is read as %q", value, key)
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		if again, err := idempotencyKey(http.Header{"Idempotency-Key": {quoted}}); err != nil || again != key {
			t.Errorf("%q is read as %q, and in quotes as %q, %v", value, key, again, err)
		}
	})
}

// A question that passes all checks has well-formed names.
func FuzzQuestion(f *testing.F) {
	const organization = `"organization_id":"00000000-0000-0000-0000-000000000000"`
	for _, seed := range []string{
		`{` + organization + `,"agent_id":"a","tool_name":"a.b"}`,
		`{` + organization + `,"agent_id":"a","tool_name":"a.b","payload":{"a":[1]},"actor_type":"human","action_kind":"result"}`,
		`{` + organization + `,"agent_id":"\u0061","tool_name":"a.b","payload":null}`, `{}`, `[]`, `null`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		q, err := parseQuestion(body)
		if err != nil {
			return
		}
		in, err := q.policyInput(caller{Caller: &org.Caller{}})
		if err != nil {
			return
		}
		if !event.ValidAgent(string(in.Agent)) || !event.ValidTool(string(in.Tool)) || !event.ValidKind(in.ActorType) || !event.ValidKind(in.ActionKind) {
			t.Errorf("got %+v", in)
		}
		if in.Payload != nil && in.Payload[0] != '{' {
			t.Errorf("got payload %s", in.Payload)
		}
	})
}

// A step is the same alone and in a list.
func FuzzSteps(f *testing.F) {
	for _, seed := range []string{
		`{"step_key":"a","status":"x"}`, `{"step_key":"a","attempt":2,"kind":"result","tool_name":"a.b","payload":{"b":1,"a":[2]},"status":"x","started_at":"t","ended_at":"t"}`,
		` [{"step_key":"a"}]`, `[]`, `[[]]`, `{}`, `null`, `{"payload":null}`, `{"attempt":1e0}`, ``, `[{},{}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		steps, list, err := parseSteps(body)
		if err != nil {
			return
		}
		if len(steps) == 0 || len(steps) > 50 || !list && len(steps) != 1 {
			t.Fatalf("%q is %d steps, a list: %v", body, len(steps), list)
		}
		if _, err := jcs.Canonicalize(body, jcs.MaxDepth-1); list || err != nil { // a list is one level deeper
			return
		}
		again, list, err := parseSteps(slices.Concat([]byte("["), body, []byte("]")))
		if err != nil || !list || len(again) != 1 || !reflect.DeepEqual(again[0], steps[0]) {
			t.Errorf("%q is %+v, and in a list %+v, %v", body, steps, again, err)
		}
	})
}

// The lines equal those of a reader that has the whole text.
func FuzzSplitLines(f *testing.F) {
	for _, seed := range []string{"", "\n", "a", "a\n", "\na", "a\nb", "a\r\nb\r\n", " \t\r\n\n", "a\n\n b \n", "\r", "a\rb", "\u2028\n\v\n", "{\n}", strings.Repeat("a\n", 1000), strings.Repeat("a\n", 1001)} {
		f.Add([]byte(seed))
	}
	notBlank := regexp.MustCompile(`(?m)^.*[^ \t\r\n].*$`)
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		lines, err := splitLines(body)
		want := notBlank.FindAll(bytes.ToValidUTF8(before, []byte("?")), -1)
		if (err != nil) != (len(want) > maxBatchLines) {
			t.Fatalf("got %v for %d lines", err, len(want))
		}
		if err != nil {
			return
		}
		got := make([][]byte, len(lines))
		for i, line := range lines {
			got[i] = bytes.ToValidUTF8(line, []byte("?"))
		}
		if !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("got %q, want %q", got, want)
		}
		for _, line := range lines { // a line cannot extend into the next one
			_ = append(line, 'x')
		}
		if !bytes.Equal(body, before) {
			t.Error("the body was changed")
		}
	})
}
