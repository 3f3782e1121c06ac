package client

import (
	"net/http"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/internal/test/fakeservice"
)

func verdictOn(t *testing.T, a fakeservice.Answer) string {
	c, err := New(Config{BaseURL: "http://log.test", Token: "t", HTTP: &http.Client{Transport: a}})
	if err != nil {
		t.Fatal(err)
	}
	send := c.sendGathered
	if a.Sent == "batch" {
		send = c.sendBatchOnce
	}
	outcomes, err := send(t.Context(), []*event.Envelope{{EventID: fakeservice.AnsweredEvent, Canonical: []byte("{}")}})
	if err == nil {
		err = outcomes[0].Err
	}
	switch {
	case err == nil:
		return "stored"
	case IsRefused(err):
		return "refused"
	}
	return "kept"
}

// Queues drop an event that is refused, so only an answer that is provably the service's, and about
// the event, is a refusal.
func TestAnswers(t *testing.T) {
	for _, a := range fakeservice.Answers(t, "../testdata/answers.json") {
		if got := verdictOn(t, a); got != a.Verdict {
			t.Errorf("%s: %s: got %s, want %s", a.Sent, a.Name, got, a.Verdict)
		}
	}
}
