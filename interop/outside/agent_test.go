package outside

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/client/runs"
	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/grant/granthttp"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/tlog"
)

func TestSignAndSend(t *testing.T) {
	s := startedService(t)
	c, signer := s.client(t), s.signer(t)
	envelope, err := signer.SignEvent(client.Event{ActionKind: "tool_call", Tool: "acme.orders.read", Payload: map[string]any{"order": "A-1009"}})
	if err != nil {
		t.Fatal(err)
	}
	result, err := c.Send(t.Context(), envelope)
	if err != nil || result.Status != client.Created || result.Sequence == 0 {
		t.Fatalf("got %+v, %v", result, err)
	}
	if result, err = c.Send(t.Context(), envelope); err != nil || result.Status != client.Replayed {
		t.Errorf("again: got %+v, %v", result, err)
	}
	parsed, err := event.Parse(envelope, event.Options{MaxBytes: event.DefaultMaxBytes, Organization: s.Organization})
	if err != nil || parsed.EventID != result.EventID || parsed.AgentID != s.Agent.AgentID {
		t.Errorf("parsed %+v, %v", parsed, err)
	}
	outcomes := c.SendBatch(t.Context(), [][]byte{envelope, []byte("{}")})
	if outcomes[0].Err != nil || outcomes[0].Result.Status != client.Replayed || !client.IsRefused(outcomes[1].Err) {
		t.Errorf("batch: got %+v", outcomes)
	}
	document, err := c.AgentDID(t.Context(), s.Agent.AgentID)
	if err != nil {
		t.Fatal(err)
	}
	if public, err := did.ParseKey(document.ID); err != nil || public != signer.Public() {
		t.Errorf("the agent's document is of another key, %v", err)
	}
}

// Errors are distinguished by public types and values.
func TestErrors(t *testing.T) {
	s := startedService(t)
	envelope, err := s.signer(t).SignEvent(client.Event{ActionKind: "tool_call"})
	if err != nil {
		t.Fatal(err)
	}
	dial := func(url, token string) *client.Client {
		c, err := client.New(client.Config{BaseURL: url, Token: token, Retry: client.Retry{Attempts: 1}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if _, err := s.client(t).Send(t.Context(), []byte(`{"schema_version":2}`)); !fault.Is(err, fault.Invalid) || !client.IsRefused(err) {
		t.Errorf("malformed: %v", err)
	}
	if _, err := dial(s.main, "").Send(t.Context(), envelope); !errors.Is(err, client.ErrNoToken) {
		t.Errorf("no token: %v", err)
	}
	var refused *client.Error
	if _, err := dial(s.main, "apl_live_unknown").Send(t.Context(), envelope); !errors.As(err, &refused) || refused.Status != http.StatusUnauthorized {
		t.Errorf("unknown token: %v", err)
	}
	if _, err := dial("http://127.0.0.1:1", "t").Send(t.Context(), envelope); !client.IsUnreachable(err) {
		t.Errorf("nobody listens: %v", err)
	}
	if _, err := s.client(t).FetchBundle(t.Context(), s.Slug, "evt_unknown"); !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		t.Errorf("unknown event: %v", err)
	}
	if _, err := id.ParseOrganization("x"); !errors.Is(err, id.ErrMalformed) {
		t.Errorf("organization: %v", err)
	}
}

// The service decides like package policy for the same document.
func TestEvaluate(t *testing.T) {
	s := startedService(t)
	s.withPolicy(t)
	document, err := policy.Parse([]byte(strings.Replace(refundPolicy, "{", `{"version":1,`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := policy.Compile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range []id.Tool{"acme.orders.read", "acme.payments.refund", "acme.customers.delete"} {
		question := client.Question{Organization: s.Organization, Agent: s.Agent.AgentID, Tool: tool, Payload: map[string]any{"n": 1}}
		got, err := s.client(t).Evaluate(t.Context(), question)
		if err != nil {
			t.Fatal(err)
		}
		input := policy.Input{Tool: tool, Agent: s.Agent.AgentID, ActorType: "agent", ActionKind: "tool_call", Payload: []byte(`{"n":1}`)}
		evaluation := compiled.Evaluate(input)
		want := evaluation.Settle(nil)
		if got.Decision != want.Decision || got.RuleID != want.RuleID || got.InputDigest != policy.InputDigest(input) {
			t.Errorf("%s: the service says %s by %s, the policy %s by %s", tool, got.Decision, got.RuleID, want.Decision, want.RuleID)
		}
	}
}

func TestGuard(t *testing.T) {
	s := startedService(t)
	owner := s.withPolicy(t)
	journal, err := guard.OpenJournal(t.TempDir(), guard.JournalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	actions, err := guard.New(guard.Config{
		Client: s.client(t), Signer: s.signer(t), Journal: journal,
		OnAsk:   func(a client.Approval) { owner.approve(t, a) },
		OnError: func(err error) { t.Error(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	refund := guard.Action{Key: "refund-A-1009", Tool: "acme.payments.refund", Payload: map[string]any{"amount_usd": 84.5}}
	var permit guard.Permit
	for i := range 2 {
		outcome, err := actions.Run(t.Context(), refund, func(_ context.Context, p guard.Permit) (any, error) {
			permit = p
			return map[string]any{"refunded": true}, nil
		})
		if err != nil || outcome.Repeated != (i == 1) || string(outcome.Result) != `{"refunded":true}` {
			t.Fatalf("run %d: got %+v, %v", i, outcome, err)
		}
	}
	s.checkGrant(t, permit)
	other := refund
	other.Payload = map[string]any{"amount_usd": 85}
	if _, err := actions.Run(t.Context(), other, nil); !errors.Is(err, guard.ErrKeyReused) {
		t.Errorf("another action of the key: %v", err)
	}
	var denied *client.DeniedError
	if _, err := actions.Run(t.Context(), guard.Action{Tool: "acme.customers.delete"}, nil); !errors.As(err, &denied) || denied.Decision.RuleID != "customers" {
		t.Errorf("denied: %v", err)
	}
	if err := actions.Flush(t.Context()); err != nil || journal.Queued() != 0 {
		t.Errorf("flush: %v, %d queued", err, journal.Queued())
	}
}

// checkGrant checks a grant like a tool that receives it.
func (s *service) checkGrant(t *testing.T, permit guard.Permit) {
	t.Helper()
	keys, err := s.client(t).Keys(t.Context(), s.Slug)
	if err != nil {
		t.Fatal(err)
	}
	if err := guard.CheckCall([]byte(permit.Approved), map[string]any{"amount_usd": 84.5}); err != nil {
		t.Error(err)
	}
	if err := guard.CheckCall([]byte(permit.Approved), map[string]any{"amount_usd": 85}); !errors.Is(err, guard.ErrOtherCall) {
		t.Errorf("another call: got %v", err)
	}
	action, err := grant.NewAction(s.Organization, s.Agent.AgentID, "acme.payments.refund", []byte(permit.Approved))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if k.Use != "grant" {
			continue
		}
		key, err := tlog.ParseVerifierKey(k.VerifierKey)
		if err != nil {
			t.Fatal(err)
		}
		opened, err := grant.Open([]byte(permit.Grant), key)
		if err != nil {
			t.Fatal(err)
		}
		if err := opened.Check(action.Digest(), id.InstantOf(time.Now())); err != nil {
			t.Error(err)
		}
		if err := opened.Check(id.Hash{}, id.InstantOf(time.Now())); !errors.Is(err, grant.ErrOtherAction) {
			t.Errorf("another action: %v", err)
		}
		checkAtTool(t, k.VerifierKey, permit.Grant)
		return
	}
	t.Errorf("no grant key among %v", keys)
}

func TestRun(t *testing.T) {
	s := startedService(t)
	s.withPolicy(t)
	options := runs.Options{Workflow: runs.Workflow{Name: "import"}, External: "night"}
	copied := 0
	for i := range 2 {
		run, err := runs.Start(t.Context(), s.client(t), options)
		if err != nil || run.Resumed != (i == 1) || run.Status != runs.Running {
			t.Fatalf("start: got %+v, %v", run, err)
		}
		done, err := run.Do(t.Context(), runs.Step{Key: "file-1", Tool: "acme.files.import"}, func(context.Context) error {
			copied++
			return nil
		})
		if err != nil || !done || copied != 1 {
			t.Errorf("step: done %v, %d times, %v", done, copied, err)
		}
		var denied *client.DeniedError
		if _, err := run.Do(t.Context(), runs.Step{Key: "drop", Tool: "acme.customers.drop"}, nil); !errors.As(err, &denied) {
			t.Errorf("denied step: %v", err)
		}
	}
	run, err := runs.Start(t.Context(), s.client(t), options)
	if err != nil {
		t.Fatal(err)
	}
	result, err := run.Complete(t.Context(), runs.Ending{Status: runs.Succeeded})
	if err != nil || result.Status != runs.Succeeded || result.Root == nil {
		t.Errorf("complete: got %+v, %v", result, err)
	}
	var refused *client.Error
	if _, err := run.Complete(t.Context(), runs.Ending{Status: runs.Failed}); !errors.As(err, &refused) || refused.Status != http.StatusConflict {
		t.Errorf("another ending: %v", err)
	}
}

// checkAtTool sends a grant to a tool that starts after it was signed, and so can't know whether it was used.
func checkAtTool(t *testing.T, key, note string) {
	t.Helper()
	checker, err := granthttp.New(granthttp.Config{Keys: []string{key}, Routes: []granthttp.Route{{Route: "POST /x", Tool: "acme.x"}}})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/x", nil)
	r.Header.Set(granthttp.GrantHeader, base64.StdEncoding.EncodeToString([]byte(note)))
	answer := httptest.NewRecorder()
	checker.Wrap(http.NotFoundHandler()).ServeHTTP(answer, r)
	if got := answer.Body.String(); answer.Code != http.StatusForbidden || !strings.Contains(got, "before_start") {
		t.Errorf("at the tool: got %d %s", answer.Code, got)
	}
}
