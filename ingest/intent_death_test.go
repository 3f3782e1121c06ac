package ingest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
)

// The service dies before or after each write between an intent and its approval. When the event is retried, it has
// one index in the ledger and one approval, and the other organization has none.
func TestDeathBetweenIntentAndApproval(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		for _, after := range []bool{false, true} {
			n := 0
			for dieWhileAsking(t, open(t), n, after) {
				n++
			}
			if n < 3 { // the event, when the approval is due, the approval
				t.Errorf("died at %d writes, want 3 or more", n)
			}
		}
	})
}

// dieWhileAsking reports whether the run has that many writes.
func dieWhileAsking(t *testing.T, engine storage.Engine, n int, after bool) bool {
	t.Helper()
	m := &enginetest.Mortal{Engine: engine}
	w := newWorldOn(t, ledgertest.On(t, m))
	w.activate(&w.red, "pol-1", rules)
	envelope := w.envelope(&w.red, "refund", intent("acme.ask"))
	m.DieAt(n, after)
	first := w.send(&w.red, envelope, wantsApproval)
	died := m.Dead()
	if err := w.Ledgers.Close(); err != nil {
		t.Fatal(err)
	}
	if died == (first.Code == http.StatusCreated) {
		t.Errorf("write %d, done %v: died %v, got %d %s", n, after, died, first.Code, first.Body)
	}
	w.Service = w.Again(t, engine)
	w.open()
	second := w.send(&w.red, envelope, wantsApproval)
	third := w.send(&w.red, envelope, wantsApproval)
	for _, a := range []answer{second, third} {
		if told(a.fields) != "allow_with_obligation pending" || a.fields["approval_id"] != second.fields["approval_id"] {
			t.Errorf("write %d, done %v: got %d %s", n, after, a.Code, a.Body)
		}
	}
	requests := 0
	for _, statement := range w.Audit(t, w.red.tenant) {
		if strings.Contains(string(statement.Payload), `"intent_event_id":"refund"`) {
			requests++
		}
	}
	if requests != 1 || w.State(t, w.blue.tenant).Size() != 0 {
		t.Errorf("write %d, done %v: asked %d times, want 1", n, after, requests)
	}
	return died
}
