package fakeservice

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

// Answer is an answer to the event AnsweredEvent, and what it means (testdata/answers.json). As a transport it answers
// each request.
type Answer struct {
	Name    string            `json:"name"`
	Sent    string            `json:"sent"` // alone or batch
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Verdict string            `json:"verdict"` // stored, refused or kept
}

// AnsweredEvent is the event that all answers are about.
const AnsweredEvent = "evt-1"

// Answers reads the answers from testdata/answers.json.
func Answers(t testing.TB, file string) []Answer {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var corpus struct {
		EventID string   `json:"event_id"`
		Vectors []Answer `json:"vectors"`
	}
	if err := json.Unmarshal(text, &corpus); err != nil || len(corpus.Vectors) == 0 || corpus.EventID != AnsweredEvent {
		t.Fatalf("%s: event %q, %d answers, %v", file, corpus.EventID, len(corpus.Vectors), err)
	}
	return corpus.Vectors
}

// RoundTrip implements http.RoundTripper.
func (a Answer) RoundTrip(r *http.Request) (*http.Response, error) {
	header := http.Header{}
	for name, value := range a.Headers {
		header.Set(name, value)
	}
	return &http.Response{StatusCode: a.Status, Header: header, Body: io.NopCloser(strings.NewReader(a.Body)),
		ContentLength: int64(len(a.Body)), Request: r}, nil
}
