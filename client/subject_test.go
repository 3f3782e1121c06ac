package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/fakeservice"
)

// subjectOf is the key of a user in a context.
type subjectOf struct{}

// tokensOf records the subject tokens of requests, by the end of their path.
type tokensOf struct {
	http.RoundTripper
	sent []string
	body string // of the latest request
}

func (r *tokensOf) RoundTrip(q *http.Request) (*http.Response, error) {
	r.sent = append(r.sent, q.URL.Path[strings.LastIndex(q.URL.Path, "/")+1:]+" "+strings.Join(q.Header["Agentledger-Subject-Token"], ","))
	text, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	r.body, q.Body = string(text), io.NopCloser(bytes.NewReader(text))
	return r.RoundTripper.RoundTrip(q)
}

// Requests with events and questions with a subject have the token of the call's context, and no other request has it. Without a token that can be read,
// nothing is sent.
func TestSubjectToken(t *testing.T) {
	s := fakeservice.Start(t, 2)
	o := s.Organization(1)
	failed := errors.New("no session")
	transport := &tokensOf{RoundTripper: http.DefaultTransport}
	c, err := New(Config{BaseURL: s.URL, Token: o.Token, HTTP: &http.Client{Transport: transport}, Retry: Retry{Attempts: 1},
		SubjectToken: func(ctx context.Context) (string, error) {
			switch user := ctx.Value(subjectOf{}); user {
			case nil:
				return "", nil
			case "unknown":
				return "", failed
			default:
				return "jwt-of-" + user.(string), nil
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	ann, nobody := context.WithValue(t.Context(), subjectOf{}, "ann"), t.Context()
	one := func(name string) []byte { return envelope(t, o, Event{EventID: id.Event(name)}) }
	first := one("evt_1")
	for _, step := range []func() error{
		func() error { _, err := c.Send(ann, first); return err },
		func() error { _, err := c.Send(nobody, one("evt_2")); return err },
		func() error { return c.SendBatch(ann, [][]byte{one("evt_3"), one("evt_4")})[0].Err },
		func() error { return c.SendBatch(nobody, [][]byte{one("evt_5"), one("evt_6")})[1].Err },
		func() error { _, _, err := c.FindEvent(ann, first); return err },
		func() error {
			_, err := c.Evaluate(ann, Question{Organization: o.ID, Agent: o.Agent, Tool: "acme.refund"})
			return err
		},
		func() error {
			_, err := c.Evaluate(ann, Question{Organization: o.ID, Agent: o.Agent, Tool: "acme.refund",
				OnBehalfOf: &event.OnBehalfOf{Issuer: "https://login.example", Subject: "ann"}})
			return err
		},
	} {
		if err := step(); err != nil {
			t.Error(err)
		}
	}
	want := []string{"events jwt-of-ann", "events ", "batch jwt-of-ann", "batch ", "events ", "evaluate ", "evaluate jwt-of-ann"}
	if !slices.Equal(transport.sent, want) {
		t.Errorf("got %q, want %q", transport.sent, want)
	}
	if want := `"on_behalf_of":{"issuer":"https://login.example","subject":"ann"}`; !strings.Contains(transport.body, want) {
		t.Errorf("got %s, want %s", transport.body, want)
	}
	_, err = c.Send(context.WithValue(t.Context(), subjectOf{}, "unknown"), one("evt_7"))
	if !errors.Is(err, failed) || IsRefused(err) || len(transport.sent) != len(want) || o.Size() != 6 || s.Organization(0).Size() != 0 {
		t.Errorf("without a token: got %v, %d requests, %d events", err, len(transport.sent), o.Size())
	}
}
