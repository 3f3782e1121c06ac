package ingest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/ingest"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/log"
)

func TestBatchDuplicatesAreNotWaitedForEndlessly(t *testing.T) {
	ledgers := &elusive{}
	w := newWorld(t, func(o *ingest.Options) { ledgers.Ledgers, o.Ledgers = o.Ledgers, ledgers })
	a := w.batch(&w.red, ndjson(w.envelope(&w.red, "a", nil), "{}", w.envelope(&w.red, "b", nil)))
	over := fmt.Sprintf(`{"status_code":503,"error":"Too many requests for the same event","code":"overloaded","request_id":%q}`, a.Header().Get("X-Request-Id"))
	w.expectLines(a, over, refusedLine(422, "Missing organization_id"), over)
	if got := ledgers.tries.Load(); got != 8 {
		t.Errorf("got %d tries, want 8", got)
	}
}

func TestBatchOfFailedAppends(t *testing.T) {
	for code, err := range map[string]*fault.Error{
		"overloaded":      {Kind: fault.Overloaded, Code: "overloaded", Message: "Later"},
		"outcome_unknown": {Kind: fault.OutcomeUnknown, Code: "outcome_unknown", Message: "Later"},
		"frozen":          {Kind: fault.Unavailable, Code: "frozen", Message: "Later", Err: context.DeadlineExceeded},
		"unavailable":     {Kind: fault.Unavailable, Message: "Later"},
	} {
		w := newWorld(t, func(o *ingest.Options) { o.Ledgers = &failing{o.Ledgers, err} })
		a := w.batch(&w.red, ndjson(w.envelope(&w.red, "evt", nil), "[]"))
		want := fmt.Sprintf(`{"status_code":503,"error":"Later","code":%q,"request_id":%q}`, code, a.Header().Get("X-Request-Id"))
		w.expectLines(a, want, refusedLine(422, "The body must be a JSON object"))
	}
}

// partly makes the appends of some events fail, each in its own way.
type partly struct {
	ingest.Ledgers
	failures []error
}

func (p *partly) AppendTo(ctx context.Context, s *log.State, prepares []log.Prepare) []log.Outcome {
	outcomes := p.Ledgers.AppendTo(ctx, s, prepares)
	for i, err := range p.failures {
		if err != nil {
			outcomes[i] = log.Outcome{Err: err}
		}
	}
	return outcomes
}

// The cause is never shown. It is logged once, with the request ID that the lines contain.
func TestBatchFailuresAreLogged(t *testing.T) {
	var logged bytes.Buffer
	ledgers := &partly{}
	w := newWorld(t, func(o *ingest.Options) {
		ledgers.Ledgers, o.Ledgers = o.Ledgers, ledgers
		o.Edge = &edge.Edge{Passer: traffic.Passer(), Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	})
	later := fault.Wrap(fault.Unavailable, "Later", errors.New("disk on fire"))
	ledgers.failures = []error{nil, later, errors.New("secret cause"), later}
	a := w.batch(&w.red, ndjson(w.envelope(&w.red, "a", nil), w.envelope(&w.red, "b", nil), w.envelope(&w.red, "c", nil), w.envelope(&w.red, "d", nil)))
	request := a.Header().Get("X-Request-Id")
	unavailable := fmt.Sprintf(`{"status_code":503,"error":"Later","code":"unavailable","request_id":%q}`, request)
	w.expectLines(a, "201 a", unavailable, fmt.Sprintf(`{"status_code":500,"error":"Internal error","request_id":%q}`, request), unavailable)
	for _, want := range []string{
		`level=WARN msg="batch lines failed" request_id=` + request + ` lines=2 first_line=2 err="Later: disk on fire"`,
		`level=ERROR msg="batch lines failed" request_id=` + request + ` lines=1 first_line=3 err="secret cause"`,
		`status=200`,
	} {
		if strings.Count(logged.String(), want) != 1 {
			t.Errorf("no %q in %s", want, &logged)
		}
	}
}

// explosive panics if a certain key is read.
type explosive struct{ ingest.Agents }

func (e explosive) SigningKey(ctx context.Context, s *log.State, a id.Agent, k id.Key) (agent.Key, error) {
	if k == "boom" {
		panic("boom")
	}
	return e.Agents.SigningKey(ctx, s, a, k)
}

// A panic fails only its own batch, not the process.
func TestBatchPanics(t *testing.T) {
	var logged bytes.Buffer
	w := newWorld(t, func(o *ingest.Options) {
		o.Agents = explosive{o.Agents}
		o.Edge = &edge.Edge{Passer: traffic.Passer(), Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	})
	bad := w.envelope(&w.red, "bad", fields{"key_id": "boom"})
	for range 8 { // no slot is lost
		a := w.batch(&w.red, ndjson(w.envelope(&w.red, "good", nil), bad))
		want := fmt.Sprintf(`{"error":"Internal error","request_id":%q}`, a.Header().Get("X-Request-Id"))
		if a.Code != http.StatusInternalServerError || a.Body.String() != want {
			t.Fatalf("got %d %s", a.Code, a.Body)
		}
	}
	if !strings.Contains(logged.String(), "panic: boom") || w.sizes() != [2]id.Index{} {
		t.Errorf("sizes %v, logged %s", w.sizes(), &logged)
	}
	w.expectLines(w.batch(&w.blue, w.envelope(&w.blue, "good", nil)), "201 good")
}

// leaving ends the request at the first read of a key.
type leaving struct {
	ingest.Agents
	leave func()
	once  sync.Once
}

func (l *leaving) SigningKey(ctx context.Context, s *log.State, a id.Agent, k id.Key) (agent.Key, error) {
	l.once.Do(l.leave)
	return l.Agents.SigningKey(ctx, s, a, k)
}

// If the client disconnects while its lines are read, no line is processed.
func TestBatchOfClientThatLeaves(t *testing.T) {
	agents := &leaving{}
	w := newWorld(t, func(o *ingest.Options) { agents.Agents, o.Agents = o.Agents, agents })
	ctx, cancel := context.WithCancel(t.Context())
	agents.leave = cancel
	var bodies []string
	for i := range 200 {
		bodies = append(bodies, w.envelope(&w.red, fmt.Sprint("evt-", i), nil))
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, batchPath, strings.NewReader(ndjson(bodies...)))
	r.Header.Set("Authorization", "Bearer "+w.red.token)
	a := httptest.NewRecorder()
	w.handler.ServeHTTP(a, r)
	if a.Code != http.StatusServiceUnavailable || w.sizes() != [2]id.Index{} {
		t.Errorf("got %d %s, sizes %v", a.Code, a.Body, w.sizes())
	}
}
