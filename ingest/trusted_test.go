package ingest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/storage"
)

const isFrozen = "The organization's ledger is frozen"

// closed is the message of each level of a fault for requests that need a judgement.
var closed = map[string]string{
	"frozen":    isFrozen,
	"read_only": "The organization's ledger is read-only until its checkpoint is adopted",
	"importing": "The organization is being imported",
	"moved":     "The organization was moved to another place",
}

// refusesToJudge checks that every request that is judged by the member's records is rejected, with and without the
// fast path.
func (w *world) refusesToJudge(m *member, code, approvalPath, digest, runPath string) {
	w.Helper()
	handler := w.handler
	defer func() { w.handler = handler }()
	fresh := func() string { return w.envelope(m, "fresh", nil) }
	for way, h := range map[string]http.Handler{"fast": w.fast, "slow": w.slow, "watched": handler} {
		w.handler = h
		for what, a := range map[string]answer{
			"evaluate":         w.post(evaluatePath, m.token, w.question(m, nil)),
			"evaluate unnamed": w.post(evaluatePath, m.token, w.question(m, fields{"tool_name": "acme.other"})),
			"evaluate and ask": w.post(evaluatePath, m.token, w.question(m, fields{"tool_name": "acme.ask", "request_approval": true})),
			"ask":              w.post(approvalsPath, m.token, w.question(m, refund)),
			"poll":             w.do("GET", approvalPath, m.token, ""),
			"poll nothing":     w.do("GET", approvalsPath+"/apr_x?wait=1", m.token, ""),
			"consume":          w.post(approvalPath+"/consume", m.token, claim(m, approvalPath, digest)),
			"cancel":           w.post(approvalPath+"/cancel", m.token, ""),
			"event":            w.send(m, fresh()),
			"replay only":      w.send(m, fresh(), replayOnly),
			"start":            w.post(prefixes[0]+"/runs", m.token, runBody),
			"step":             w.post(runPath+"/steps", m.token, stepBody),
			"complete":         w.post(runPath+"/complete", m.token, endBody),
		} {
			if a.Code != http.StatusServiceUnavailable || a.fields["error"] != closed[code] || a.fields["code"] != code || a.Header().Get("Retry-After") == "" {
				w.Errorf("%s, %s: got %d %s %v, want 503 %q (%s)", way, what, a.Code, a.Body, a.Header(), closed[code], code)
			}
		}
		batch := w.post(batchPath, m.token, fresh()+"\n", "Content-Type: application/x-ndjson")
		if want := `"error":"` + closed[code] + `"`; batch.Code != http.StatusOK || !strings.Contains(batch.Body.String(), want) {
			w.Errorf("%s, batch: got %d %s, want %s", way, batch.Code, batch.Body, want)
		}
	}
}

// prepared creates the records that a member's requests are judged by: a policy, a granted approval, a run and an
// event.
func (w *world) prepared(m *member) (approvalPath, digest, runPath string) {
	w.Helper()
	w.activate(m, "pol-1", rules)
	w.mustCreate(m, "one", nil)
	runPath = w.startRun(m, runBody)
	approvalPath, digest = w.ask(m, refund)
	w.agree(m, approvalPath, digest, "acc_1", "acc_2")
	return approvalPath, digest, runPath
}

// A store that was rolled back contains the revoked key, the replaced policy and the cancelled approval. None of them
// is used.
func TestRolledBackJudgesNothing(t *testing.T) {
	w := newWorld(t)
	approvalPath, digest, runPath := w.prepared(&w.red)
	w.prepared(&w.blue)
	older := w.Store.Reopen()
	w.activate(&w.red, "pol-2", `[{"rule_id":"off","tool":"*","decision":"deny"}]`)
	w.expect(w.post(approvalPath+"/cancel", w.red.token, ""), http.StatusConflict, "The approval is invalidated")
	if _, err := w.agents.RevokeKey(t.Context(), w.red.tenant, "acc", w.red.agent.Agent, w.red.agent.Key, agent.Revocation{}); err != nil {
		t.Fatal(err)
	}
	w.restart(older)
	w.refusesToJudge(&w.red, "frozen", approvalPath, digest, runPath)

	w.expectReplayed(w.send(&w.red, w.envelope(&w.red, "one", nil)), "one")
	unknown := w.send(&w.red, w.envelope(&w.red, "two", fields{"key_id": "registered-later"}))
	w.expect(unknown, http.StatusServiceUnavailable, isFrozen)
	if a := w.do("GET", runPath, w.red.token, ""); a.Code != http.StatusOK {
		t.Errorf("run: got %d %s, want what is stored", a.Code, a.Body)
	}
	w.works(&w.blue)
}

// works checks that a member's requests still succeed.
func (w *world) works(m *member) {
	w.Helper()
	if a := w.post(evaluatePath, m.token, w.question(m, nil)); a.Code != http.StatusOK || a.fields["decision"] != "allow" {
		w.Errorf("evaluate: got %d %s", a.Code, a.Body)
	}
	path, digest := w.ask(m, fields{"tool_name": "acme.ask", "trace_id": "another"})
	w.agree(m, path, digest, "acc_1", "acc_2")
	if a := w.do("GET", path, m.token, ""); a.fields["status"] != "approved" {
		w.Errorf("poll: got %d %s", a.Code, a.Body)
	}
	w.expect(w.post(path+"/consume", m.token, claim(m, path, digest)), http.StatusOK, "")
	w.mustCreate(m, "another", nil)
	w.startRun(m, runBody)
}

func TestClosedLedgersJudgeNothing(t *testing.T) {
	for level := range closed {
		t.Run(level, func(t *testing.T) {
			w := newWorld(t)
			approvalPath, digest, runPath := w.prepared(&w.red)
			w.prepared(&w.blue)
			fault := storage.Change{Kind: "ledger_fault", If: storage.AnyVersion, Value: fmt.Appendf(nil, `{"level":%q,"reason":"a test","at":%q}`, level, id.InstantOf(w.Clock()))}
			if err := w.Store.Write(t.Context(), w.red.tenant, []storage.Change{fault}); err != nil {
				t.Fatal(err)
			}
			w.restart(w.Store)
			w.refusesToJudge(&w.red, level, approvalPath, digest, runPath)
			w.expectReplayed(w.send(&w.red, w.envelope(&w.red, "one", nil)), "one")
			w.works(&w.blue)
		})
	}
}

// A ledger that is frozen while it is served judges nothing from then on.
func TestFrozenWhileServing(t *testing.T) {
	w := newWorld(t)
	approvalPath, digest, runPath := w.prepared(&w.red)
	w.prepared(&w.blue)
	if err := w.Ledgers.Freeze(t.Context(), w.red.tenant, "a witness knows another history"); err != nil {
		t.Fatal(err)
	}
	w.refusesToJudge(&w.red, "frozen", approvalPath, digest, runPath)
	w.works(&w.blue)
}
