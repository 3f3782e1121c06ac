package client

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

// answerVector is one of testdata/answers.json.
type answerVector struct {
	Name    string            `json:"name"`
	Sent    string            `json:"sent"` // alone or batch
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Verdict string            `json:"verdict"` // stored, refused or kept
}

// RoundTrip answers each request with the vector.
func (v answerVector) RoundTrip(r *http.Request) (*http.Response, error) {
	header := http.Header{}
	for name, value := range v.Headers {
		header.Set(name, value)
	}
	return &http.Response{StatusCode: v.Status, Header: header, Body: io.NopCloser(strings.NewReader(v.Body)),
		ContentLength: int64(len(v.Body)), Request: r}, nil
}

func (v answerVector) verdict(t *testing.T, sent id.Event) string {
	c, err := New(Config{BaseURL: "http://log.test", Token: "t", HTTP: &http.Client{Transport: v}})
	if err != nil {
		t.Fatal(err)
	}
	send := c.sendGathered
	if v.Sent == "batch" {
		send = c.sendBatchOnce
	}
	outcomes, err := send(t.Context(), []*event.Envelope{{EventID: sent, Canonical: []byte("{}")}})
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
	text, err := os.ReadFile("../testdata/answers.json")
	if err != nil {
		t.Fatal(err)
	}
	var corpus struct {
		EventID id.Event       `json:"event_id"`
		Vectors []answerVector `json:"vectors"`
	}
	if err := json.Unmarshal(text, &corpus); err != nil || len(corpus.Vectors) == 0 {
		t.Fatal(err)
	}
	for _, v := range corpus.Vectors {
		if got := v.verdict(t, corpus.EventID); got != v.Verdict {
			t.Errorf("%s: %s: got %s, want %s", v.Sent, v.Name, got, v.Verdict)
		}
	}
}
