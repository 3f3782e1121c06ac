package ingest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/ingest"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/log"
)

// hanging makes one organization's appends, from the given one on, hang until the request ends.
type hanging struct {
	ingest.Ledgers
	tenant id.Tenant
	from   int32
	calls  atomic.Int32
	hangs  func() // called when an append hangs
}

func (h *hanging) AppendTo(ctx context.Context, s *log.State, prepares []log.Prepare) []log.Outcome {
	if s.Identity().Tenant != h.tenant || h.calls.Add(1) < h.from {
		return h.Ledgers.AppendTo(ctx, s, prepares)
	}
	h.hangs()
	<-ctx.Done()
	return h.Ledgers.AppendTo(ctx, s, prepares) // the result with a context that has ended
}

// If the request of a batch ends, each line still has an answer: committed lines are reported, and the client learns
// that it must resend the others.
func TestBatchEndsBehindItsFirstPortion(t *testing.T) {
	ledgers := &hanging{from: 2}
	w := newWorld(t, func(o *ingest.Options) { ledgers.Ledgers, o.Ledgers = o.Ledgers, ledgers })
	ledgers.tenant = w.red.tenant
	ctx, cancel := context.WithCancel(t.Context())
	ledgers.hangs = cancel
	bodies := w.lines(&w.red, 2*portion+40)
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, eventsPath+"/batch", strings.NewReader(ndjson(bodies...)))
	r.Header.Set("Authorization", "Bearer "+w.red.token)
	r.Header.Set("Content-Type", edge.MediaNDJSON)
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, r)
	lines := strings.Split(strings.TrimSpace(recorder.Body.String()), "\n")
	if recorder.Code != http.StatusOK || len(lines) != len(bodies) {
		t.Fatalf("got %d with %d lines: %.200s", recorder.Code, len(lines), recorder.Body)
	}
	for i, line := range lines {
		created := strings.Contains(line, `"status_code":201`)
		again := strings.Contains(line, `"status_code":503`) && (strings.Contains(line, `"code":"unavailable"`) || strings.Contains(line, `"code":"outcome_unknown"`))
		if created != (i < portion) || again != (i >= portion) {
			t.Fatalf("line %d: got %s", i, line)
		}
	}
	ledgers.tenant = id.Service
	got := w.batch(&w.red, ndjson(bodies...)).statuses()
	if got[http.StatusOK]+got[http.StatusCreated] != len(bodies) || got[http.StatusOK] < portion {
		t.Errorf("sent again: got %v", got)
	}
	if size := w.sizes()[0]; size != id.Index(len(bodies)) {
		t.Errorf("got size %d, want each event once: %d", size, len(bodies))
	}
	w.Audit(t, w.red.tenant)
}

// sleeper has approvals that never change.
type sleeper struct{ ingest.Approvals }

func (sleeper) Get(ctx context.Context, _ id.Tenant, _ string, name approval.ID, wait time.Duration) (approval.Approval, error) {
	select {
	case <-time.After(wait):
		return approval.Approval{ID: name, Status: approval.Pending, Quorum: 1}, nil
	case <-ctx.Done():
		return approval.Approval{}, ctx.Err()
	}
}

// The request timeout does not cut off a long poll: the wait is added to it.
func TestLongPollsHaveTheirWaitOnTop(t *testing.T) {
	w := newWorld(t, func(o *ingest.Options) {
		o.Edge.Bound = edge.NewBound(2 * time.Second)
		o.Approvals = sleeper{}
	})
	path := approvalsPath + "/apr_00000000000000000000000000"
	w.expect(w.do(http.MethodGet, path, w.red.token, ""), http.StatusOK, "")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path+"?wait=30", nil)
		r.Header.Set("Authorization", "Bearer "+w.red.token)
		recorder := httptest.NewRecorder()
		w.fast.ServeHTTP(recorder, r)
		if took := time.Since(began); recorder.Code != http.StatusOK || took != 30*time.Second {
			t.Errorf("got %d after %v, want 200 after 30s", recorder.Code, took)
		}
	})
}
