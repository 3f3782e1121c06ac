package main

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/fakeservice"
)

// outcomeOf returns the outcome of an event to which the service, or something in front of it, gives an answer.
func outcomeOf(t *testing.T, a fakeservice.Answer) (envelope []byte, o client.Outcome) {
	t.Helper()
	signer, err := client.NewSigner(client.Identity{Organization: id.Organization{1}, Agent: "agt_1", Key: "key_1"}, make([]byte, edkey.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	envelope, err = signer.SignEvent(client.Event{EventID: fakeservice.AnsweredEvent, ActionKind: "note"})
	if err != nil {
		t.Fatal(err)
	}
	followNone := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c, err := client.New(client.Config{BaseURL: "http://log.test", Token: "t", HTTP: &http.Client{Transport: a, CheckRedirect: followNone},
		Retry: client.Retry{Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if a.Sent == "batch" {
		return envelope, c.SendBatch(t.Context(), [][]byte{envelope})[0]
	}
	return envelope, sendEnvelopes(t.Context(), c, [][]byte{envelope})[0]
}

// send and replay count an event as refused only if the service has refused it for good. Otherwise they say that it was not
// delivered, or stop.
func TestAnswers(t *testing.T) {
	for _, a := range fakeservice.Answers(t, "../../testdata/answers.json") {
		envelope, o := outcomeOf(t, a)

		var out bytes.Buffer
		d := delivery{streams: &streams{out: &out, err: io.Discard}}
		got := "stored"
		if err := d.printOutcome(envelope, o); err != nil || d.kept == 1 {
			got = "kept"
		} else if d.refused == 1 {
			got = "refused"
		}
		if got != a.Verdict || got == "stored" && !strings.Contains(out.String(), "ed ") {
			t.Errorf("send: %s: %s: got %s, want %s: %s", a.Sent, a.Name, got, a.Verdict, out.String())
		}

		r := replay{tally: newTally(), ctx: t.Context()}
		err := r.countOutcome(outgoingEvent{}, o)
		got = map[bool]string{true: "kept", false: "stored"}[err != nil]
		if r.tally.summary.Refused == 1 {
			got = "refused"
		}
		want := a.Verdict
		if strings.Contains(a.Name, "organization mismatch") {
			want = "kept" // the run stops, because all other lines are refused too
		}
		if got != want {
			t.Errorf("replay: %s: %s: got %s, want %s", a.Sent, a.Name, got, want)
		}
	}
}
