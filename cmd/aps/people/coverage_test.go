package people

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// serveActs answers for two organizations by their tokens, each with two pages of acts. Blue's user may not read payloads.
func serveActs(w http.ResponseWriter, r *http.Request) {
	who := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	q := r.URL.Query()
	act := func(index int, at, outcome, decision, approval string) string {
		known := ""
		if q.Get("identifiers") == "1" {
			known = fmt.Sprintf(`,"identifiers":{"call_id":"%s-%d","input_digest":null,"action_digest":null,"grant_nonce":null}`, who, index)
		}
		return fmt.Sprintf(`{"log_index":%d,"event_id":"evt-%d","received_at":"2026-11-03T%s.000Z","agent_id":"bot","tool_name":"refund","trace_id":"t",
			"outcome":"%s","decision":"%s","approval_id":%s%s}`, index, index, at, outcome, decision, approval, known)
	}
	switch {
	case who != "red" && who != "blue":
		http.Error(w, `{"error":"Sign in"}`, http.StatusUnauthorized)
	case who == "blue" && q.Has("identifiers"):
		http.Error(w, `{"error":"Your role does not allow this"}`, http.StatusForbidden)
	case q.Get("from") != "2026-10-27T11:59:00.000Z" || q.Get("to") != "2026-11-03T13:01:00.000Z" || q.Get("tool") != "refund" || q.Get("order") != "oldest":
		http.Error(w, `{"error":"another range"}`, http.StatusUnprocessableEntity)
	case q.Get("after") == "":
		fmt.Fprintf(w, `{"acts":[%s,%s],"next":"2","predecessor":{"log":"x","events":3}}`, act(1, "11:00:00", "done", "allow", "null"),
			act(2, "11:00:00", "done", "allow_with_obligation", `"apr_2"`))
	default:
		fmt.Fprintf(w, `{"acts":[%s,%s,%s],"next":null,"predecessor":null}`, act(3, "12:00:00", "done", "allow", "null"),
			act(4, "12:10:00", "denied", "deny", "null"), act(5, "12:59:59", "open", "allow", "null"))
	}
}

func TestCoverage(t *testing.T) {
	console := httptest.NewServer(http.HandlerFunc(serveActs))
	t.Cleanup(console.Close)
	row := func(at, name string) string {
		return fmt.Sprintf(`{"tool":"refund","time":"2026-11-03T%sZ","call_id":"%s"}`+"\n", at, name)
	}
	for _, tc := range []struct {
		name, token, calls string
		strict             bool
		err                error
		want               []string
	}{
		{"covered", "red", row("12:00:01", "red-3") + row("12:00:00", "red-2"), false, nil, []string{"matched      2 of 2", "by call_id       2", "extra             -  2026-11-03T12:59:59.000Z  refund  bot  -  open  5"}},
		{"an act before the range without an approval", "red", row("12:00:00", "red-1"), false, ErrUncovered, []string{"missing           1", "no_act"}},
		{"denied", "red", row("12:10:00", "red-4"), false, ErrUncovered, []string{"unpermitted       1", "call_id  denied  4"}},
		{"outside", "red", row("13:00:00", "x"), false, ErrNotCompared, []string{"outside      1", "matched      0 of 0"}},
		{"without identifiers", "blue", row("12:00:01", "blue-3"), false, nil,
			[]string{"by time          1", "note         your role does not read payloads", "note         calls by time_agent and time were not identified",
				"note         1 matched call has an identifier that no act has"}},
		{"strict", "blue", row("12:00:01", "blue-3"), true, ErrUncovered, []string{"missing           1  2026-11-03T12:00:01.000Z  refund  bot  -  weak  3"}},
		{"signed out", "other", row("12:00:01", "x"), false, ErrNotCompared, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("APS_CONSOLE_TOKEN", tc.token)
			name := filepath.Join(t.TempDir(), "calls.ndjson")
			if err := os.WriteFile(name, []byte(tc.calls), 0o600); err != nil {
				t.Fatal(err)
			}
			c := CoverageCommand{Calls: name, From: "2026-11-03T12:00:00Z", To: "2026-11-03T13:00:00Z", Tolerance: time.Minute, Show: 20, Strict: tc.strict}
			c.URL = console.URL
			var out bytes.Buffer
			if err := c.Run(context.Background(), &Terminal{Out: &out}); !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
				t.Errorf("got error %v, want %v", err, tc.err)
			}
			for _, want := range tc.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in:\n%s", want, out.String())
				}
			}
		})
	}
}

func TestCoverageFlags(t *testing.T) {
	name := filepath.Join(t.TempDir(), "calls.txt")
	if err := os.WriteFile(name, []byte(`{"tool":"refund"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]CoverageCommand{
		`--field: expected a field and its source`:                   {Field: []string{"caller=id"}},
		`each field once, got "call_id=b"`:                           {Field: []string{"call_id=a", "call_id=b"}},
		`--path: a path must be like POST`:                           {Path: []string{"/x"}},
		`--tolerance must be at most 24h`:                            {Tolerance: 25 * time.Hour},
		`--format must be ndjson, csv, otlp or access`:               {},
		`--from and --to must be a range of time`:                    {Format: "ndjson"},
		`calls.txt: line 1: bare " in non-quoted-field`:              {Format: "csv"},
		`access logs, and no other format, need paths and their too`: {Format: "access"},
	} {
		c.Calls = name
		if err := c.Run(t.Context(), &Terminal{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
