package ingest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/ingest"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
)

// moving returns the path and body of one of red's requests, and creates its objects.
type moving func(w *world) (path, body string)

func movingCalls() map[string]moving {
	requested := func(verb string, voters ...string) moving {
		return func(w *world) (string, string) {
			path, digest := w.ask(&w.red, refund)
			for _, v := range voters {
				w.agree(&w.red, path, digest, account.ID(v))
			}
			if verb == "/consume" {
				return path + verb, claim(&w.red, path, digest)
			}
			return path + verb, "{}"
		}
	}
	run := func(below, body string) moving {
		return func(w *world) (string, string) { return w.startRun(&w.red, runBody) + below, body }
	}
	return map[string]moving{
		"event": func(w *world) (string, string) { return eventsPath, w.envelope(&w.red, "moved", nil) },
		"batch": func(w *world) (string, string) {
			return batchPath, w.envelope(&w.red, "moved-1", nil) + "\n" + w.envelope(&w.red, "moved-2", nil) + "\n"
		},
		"evaluation": func(w *world) (string, string) { return evaluatePath, w.question(&w.red, refund) },
		"evaluation that asks": func(w *world) (string, string) {
			return evaluatePath, strings.TrimSuffix(w.question(&w.red, refund), "}") + `,"request_approval":true}`
		},
		"question": func(w *world) (string, string) { return approvalsPath, w.question(&w.red, refund) },
		"cancel":   requested("/cancel"),
		"consume":  requested("/consume", "acc_1", "acc_2"),
		"start":    func(w *world) (string, string) { return prefixes[0] + "/runs", runBody },
		"step":     run("/steps", stepBody),
		"end":      run("/complete", endBody),
	}
}

// An organization moves to another node at each moment of each request that changes it. The request is forwarded and
// applied once.
func TestEveryChangeWhileTheOrganizationMoves(t *testing.T) {
	for name, call := range movingCalls() {
		t.Run(name, func(t *testing.T) { moveDuring(t, call) })
	}
}

// maxLooks bounds the look-ups of the owner during one request.
const maxLooks = 40

func moveDuring(t *testing.T, call moving) {
	status, added, passes := 0, id.Index(0), 0
	for at := range maxLooks {
		m := &ledgertest.Move{Tenant: ledgertest.Red}
		w := newWorldOn(t, ledgertest.NewShared(t, m.Owned), func(o *ingest.Options) { o.Edge.Passer = m })
		w.handler = w.fast // not watched, because the owner is looked up differently here
		w.activate(&w.red, "pol-1", rules)
		path, body := call(w)
		before, other := w.State(t, ledgertest.Red).Size(), w.State(t, ledgertest.Blue).Size()
		m.Begin(at)
		r := httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+w.red.token)
		if path == batchPath {
			r.Header.Set("Content-Type", "application/x-ndjson")
		}
		a := httptest.NewRecorder()
		w.handler.ServeHTTP(a, r)
		moved, passed := m.End()
		did := w.State(t, ledgertest.Red).Size() - before
		switch {
		case at == 0:
			if status, added = a.Code, did; a.Code >= 400 {
				t.Fatalf("undisturbed: got %d %s", a.Code, a.Body)
			}
		case !moved:
			if passes == 0 {
				t.Errorf("passed at none of %d looks", at-1)
			}
			return
		case did != added || a.Code != status && a.Code != http.StatusServiceUnavailable:
			t.Errorf("at look %d: %d events, want %d; %d %s", at, did, added, a.Code, a.Body)
		case a.Code == status:
			passes += passed
		case !strings.Contains(a.Body.String(), `"outcome_unknown"`):
			t.Errorf("at look %d: got %d %s, passed %d times, want %d", at, a.Code, a.Body, passed, status)
		}
		if w.State(t, ledgertest.Blue).Size() != other {
			t.Errorf("at look %d: the other organization has changed", at)
		}
	}
	t.Errorf("%d looks for an owner", maxLooks)
}
