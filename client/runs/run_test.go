package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

// bridge is a service that records one run as the real one does, and loses requests and answers as failure says.
type bridge struct {
	*testing.T
	client *client.Client
	waited []time.Duration

	mu       sync.Mutex
	external string
	starts   int
	deny     string            // tool that the policy denies
	steps    []map[string]any  // in their order
	bodies   map[string]string // by step_key and attempt
	requests []int             // steps of each request that landed
	ended    string
	failure  func(n int) (status int, after bool) // of the n'th request
	calls    int
}

func newBridge(t *testing.T) *bridge {
	b := &bridge{T: t, bodies: map[string]string{}, failure: func(int) (int, bool) { return 0, false }}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	sleep := func(ctx context.Context, d time.Duration) error {
		b.waited = append(b.waited, d)
		return ctx.Err()
	}
	plain := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var err error
	b.client, err = client.New(client.Config{
		BaseURL: server.URL, Token: "apl_test", HTTP: plain, Retry: client.Retry{Attempts: 4, Sleep: sleep},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Authorization") != "Bearer apl_test" {
		b.Errorf("%s %s: %v, %s", r.Method, r.URL, err, r.Header.Get("Authorization"))
	}
	status, after := b.failure(b.calls)
	if status == 0 || after {
		answer, answered := b.answer(r, body)
		if status == 0 {
			w.WriteHeader(answered)
			json.NewEncoder(w).Encode(answer)
			return
		}
	}
	if status < 0 {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Retry-After", "7")
	w.WriteHeader(status)
}

func (b *bridge) answer(r *http.Request, body []byte) (any, int) {
	switch path := strings.TrimPrefix(r.URL.Path, "/v1/ingest/workflows/runs"); {
	case path == "":
		return b.start(body)
	case path == "/run_1" && r.Method == "GET":
		return b.page(r), 200
	case path == "/run_1/steps":
		return b.record(body)
	case path == "/run_1/complete":
		if b.ended == "" {
			b.ended = string(body)
		}
		if b.ended != string(body) {
			return map[string]any{"error": "The run is succeeded"}, 409
		}
		return map[string]any{"run_id": "run_1", "status": "succeeded", "steps_recorded": len(b.steps), "steps_planned": nil, "gap": nil, "events_recorded": 1 + len(b.steps), "run_root": id.Hash{1}}, 200
	}
	return map[string]any{"error": "Not found"}, 404
}

func (b *bridge) start(body []byte) (any, int) {
	var request struct {
		External string `json:"external_run_id"`
	}
	json.Unmarshal(body, &request)
	status, code := "replayed", 200
	if b.external != request.External {
		b.external, b.starts = request.External, b.starts+1
		status, code = "created", 201
	}
	return map[string]any{"run_id": "run_1", "trace_id": "run_1", "status": "running", "agent_id": "bridge_x", "event": map[string]any{"event_id": "e0", "sequence_num": 1, "status": status}}, code
}

func (b *bridge) record(body []byte) (any, int) {
	var list []map[string]any
	if err := json.Unmarshal(body, &list); err != nil || len(list) > 50 {
		return map[string]any{"error": "A list has 1 to 50 steps"}, 422
	}
	var answers []any
	fresh := 0
	for _, s := range list {
		if s["attempt"] == nil {
			s["attempt"] = 1.0
		}
		text, _ := json.Marshal(s)
		name := fmt.Sprint(s["step_key"], "/", s["attempt"])
		if known, there := b.bodies[name]; there && known != string(text) {
			return map[string]any{"error": "step_key and attempt were used with another step"}, 422
		} else if !there {
			b.bodies[name] = string(text)
			b.steps = append(b.steps, s)
			fresh++
		}
		decision := "allow"
		if b.deny != "" && s["tool_name"] == b.deny {
			decision = "deny"
		}
		answers = append(answers, map[string]any{"decision": decision, "policy_id": nil, "rule_id": nil, "reason": "by rule", "event": map[string]any{"event_id": name, "sequence_num": 2, "status": "created"}})
	}
	b.requests = append(b.requests, fresh)
	return answers, 201
}

// page answers three events at a time, whatever the request asks for.
func (b *bridge) page(r *http.Request) any {
	var after int
	fmt.Sscan(r.URL.Query().Get("after"), &after)
	events := []any{map[string]any{"event_id": "e0", "action_kind": "ledger_run", "sequence_num": 1}}
	for _, s := range b.steps {
		events = append(events, map[string]any{"event_id": "e", "action_kind": "tool_call", "sequence_num": 2, "step_key": s["step_key"], "attempt": s["attempt"], "status": s["status"], "tool_name": nil, "decision": "allow"})
	}
	end := min(after+3, len(events))
	page := map[string]any{"run_id": "run_1", "status": "running", "events": events[after:end], "next": nil}
	if end < len(events) {
		page["next"] = end
	}
	return page
}

func (b *bridge) started(external string) *Run {
	b.Helper()
	r, err := Start(b.Context(), b.client, Options{Workflow: Workflow{Name: "w"}, External: external})
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// keys returns the recorded steps in order.
func (b *bridge) keys() (keys []string) {
	for _, s := range b.steps {
		keys = append(keys, fmt.Sprint(s["step_key"], "/", s["attempt"], " ", s["status"]))
	}
	return keys
}

// Whatever is lost, a run is started once, each step is recorded once, and Retry-After is honored.
func TestRunThroughFailures(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		after  bool
		wait   time.Duration
	}{
		"requests lost": {-1, false, 0}, "answers lost": {-1, true, 0},
		"503 before": {503, false, 7 * time.Second}, "503 after": {503, true, 7 * time.Second},
	} {
		b := newBridge(t)
		b.failure = func(n int) (int, bool) {
			if n%2 == 1 {
				return c.status, c.after
			}
			return 0, false
		}
		r := b.started("")
		var steps []Step
		for n := range 120 {
			steps = append(steps, Step{Key: fmt.Sprint(n), Status: "succeeded", Payload: map[string]any{"n": n}})
		}
		results, err := r.Report(t.Context(), steps...)
		if err != nil || len(results) != len(steps) || results[119].Decision != id.Allow || results[119].Event.EventID != "119/1" {
			t.Errorf("%s: %d results, %v", name, len(results), err)
		}
		ended, err := r.Complete(t.Context(), Ending{Status: Succeeded})
		if err != nil || ended.Recorded != 120 || *ended.Root != (id.Hash{1}) {
			t.Errorf("%s: ended %+v, %v", name, ended, err)
		}
		if b.starts != 1 || len(b.steps) != 120 {
			t.Errorf("%s: %d starts, %d steps", name, b.starts, len(b.steps))
		}
		if fresh := slices.DeleteFunc(slices.Clone(b.requests), func(n int) bool { return n == 0 }); !slices.Equal(fresh, []int{50, 50, 20}) {
			t.Errorf("%s: requests of %v", name, b.requests)
		}
		for _, waited := range b.waited {
			if waited < c.wait {
				t.Errorf("%s: waited %v", name, waited)
			}
		}
		if len(b.waited) < 5 {
			t.Errorf("%s: waited %d times", name, len(b.waited))
		}
	}
}

// A step that succeeded is not repeated, even by a process that resumes the run after a restart. One that failed, was
// refused or was interrupted is tried as the next attempt.
func TestRunDo(t *testing.T) {
	b := newBridge(t)
	b.deny = "acme.drop"
	did := []string{}
	do := func(r *Run, key string, tool id.Tool, fails error) (bool, error) {
		return r.Do(t.Context(), Step{Key: key, Tool: tool}, func(context.Context) error {
			did = append(did, key)
			return fails
		})
	}
	r := b.started("job")
	bad := errors.New("no paper")
	if done, err := do(r, "a", "acme.read", nil); !done || err != nil {
		t.Errorf("a: %v, %v", done, err)
	}
	if done, err := do(r, "b", "acme.print", bad); done || err != bad {
		t.Errorf("b: %v, %v", done, err)
	}
	var denied *client.DeniedError
	if done, err := do(r, "c", "acme.drop", nil); done || !errors.As(err, &denied) || denied.Reason != "by rule" || denied.Decision.Decision != id.Deny {
		t.Errorf("c: %v, %v", done, err)
	}
	if _, err := r.Report(t.Context(), Step{Key: "cut", Status: "started"}); err != nil {
		t.Fatal(err)
	}
	for _, again := range []func() *Run{func() *Run { return r }, func() *Run { return b.started("job") }} {
		r := again()
		for _, key := range []string{"a", "b", "cut"} {
			if done, err := do(r, key, "acme.read", nil); !done || err != nil {
				t.Errorf("again, %s: %v, %v", key, done, err)
			}
		}
	}
	if want := []string{"a", "b", "b", "cut"}; !slices.Equal(did, want) {
		t.Errorf("did %q, want %q", did, want)
	}
	want := []string{"a/1 started", "a.result/1 succeeded", "b/1 started", "b.result/1 failed", "c/1 started", "c.result/1 skipped", "cut/1 started",
		"b/2 started", "b.result/2 succeeded", "cut/2 started", "cut.result/2 succeeded"}
	if got := b.keys(); !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

func TestRunRefused(t *testing.T) {
	b := newBridge(t)
	r := b.started("job")
	if _, err := r.Report(t.Context(), Step{Key: "a", Status: "succeeded"}); err != nil {
		t.Fatal(err)
	}
	var refused *client.Error
	if _, err := r.Report(t.Context(), Step{Key: "a", Status: "failed"}); !errors.As(err, &refused) || refused.Status != 422 {
		t.Errorf("another step: %v", err)
	}
	if _, err := r.Complete(t.Context(), Ending{Status: Succeeded}); err != nil {
		t.Error(err)
	}
	if _, err := r.Complete(t.Context(), Ending{Status: Aborted}); !errors.As(err, &refused) || refused.Status != 409 {
		t.Errorf("another end: %v", err)
	}
	if _, err := r.Report(t.Context(), Step{Key: "b", Status: "x", Payload: func() {}}); err == nil {
		t.Error("sent a payload that is not JSON")
	}
	for answer, want := range map[string]string{
		`{}`: "no run", `[]`: "answer", `{"run_id":"r"}`: "no run",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, answer) }))
		c, err := client.New(client.Config{BaseURL: server.URL, Token: "t"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Start(t.Context(), c, Options{Workflow: Workflow{Name: "w"}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", answer, err)
		}
		server.Close()
	}
}

// A list holds as many steps as the service accepts, by number and by bytes.
func TestEncodeSteps(t *testing.T) {
	large := make([]Step, 60)
	for i := range large {
		large[i] = Step{Key: fmt.Sprint(i), Status: "x", Payload: map[string]string{"t": strings.Repeat("x", 250<<10)}}
	}
	for rest, total := large, 0; len(rest) > 0; {
		body, n, err := encodeSteps(rest)
		if err != nil || n == 0 || n > maxListSteps || len(body) > maxListBytes || !json.Valid(body) || bytes.Count(body, []byte("step_key")) != n {
			t.Fatalf("%d steps in %d bytes, %v", n, len(body), err)
		}
		if rest = rest[n:]; len(rest) > 0 && n < 30 {
			t.Errorf("only %d in a list", n)
		}
		if total += n; len(rest) == 0 && total != 60 {
			t.Errorf("%d in all", total)
		}
	}
}

// Only a step that consumed an approval may proceed under an obligation.
func TestMayProceed(t *testing.T) {
	consumed := &StepApproval{ID: "apr_1", Status: client.ApprovalConsumed}
	for name, tt := range map[string]struct {
		result StepResult
		want   bool
	}{
		"no decision":            {StepResult{}, false},
		"allowed":                {StepResult{Decision: id.Allow}, true},
		"obliged":                {StepResult{Decision: id.AllowWithObligation}, false},
		"obliged and consumed":   {StepResult{Decision: id.AllowWithObligation, Approval: consumed}, true},
		"obliged and not usable": {StepResult{Decision: id.AllowWithObligation, Approval: &StepApproval{ID: "apr_1", Status: client.ApprovalApproved}}, false},
		"denied and consumed":    {StepResult{Decision: id.Deny, Approval: consumed}, false},
	} {
		if got := tt.result.MayProceed(); got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

// Do performs a step with an approval once the step has consumed it, and sends the approval once.
func TestDoWithApproval(t *testing.T) {
	var sent []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == runsPath {
			io.WriteString(w, `{"run_id":"run_1","trace_id":"run_1","status":"running","agent_id":"a","event":{"event_id":"e","status":"created"}}`)
			return
		}
		body, _ := io.ReadAll(r.Body)
		sent = append(sent, string(body))
		io.WriteString(w, `[{"decision":"allow_with_obligation","approval":{"approval_id":"apr_1","status":"consumed","grant":"g"},"event":{"event_id":"e","status":"created"}}]`)
	}))
	defer server.Close()
	c, err := client.New(client.Config{BaseURL: server.URL, Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Start(t.Context(), c, Options{Workflow: Workflow{Name: "w"}})
	if err != nil {
		t.Fatal(err)
	}
	did := 0
	done, err := r.Do(t.Context(), Step{Key: "pay", Tool: "acme.pay", Approval: "apr_1"}, func(context.Context) error { did++; return nil })
	if !done || err != nil || did != 1 {
		t.Errorf("got %v, %v, did it %d times", done, err, did)
	}
	if len(sent) != 2 || !strings.Contains(sent[0], `"approval_id":"apr_1"`) || strings.Contains(sent[1], "approval_id") {
		t.Errorf("sent %q", sent)
	}
}
