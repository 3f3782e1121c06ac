package guard

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/fakeservice"
)

// transport answers the events of a phase with an answer, as if it were about the event, and sends other requests on.
type transport struct {
	answer *fakeservice.Answer // nil sends everything on
	phase  string
}

func (f *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	e, err := event.Parse(bytes.TrimSuffix(body, []byte("\n")), event.Options{})
	if f.answer == nil || err != nil || !strings.Contains(string(e.Canonical), `"phase":"`+f.phase+`"`) {
		r.Body = io.NopCloser(bytes.NewReader(body))
		return http.DefaultTransport.RoundTrip(r)
	}
	a := *f.answer
	a.Body = strings.ReplaceAll(a.Body, `"`+fakeservice.AnsweredEvent+`"`, `"`+string(e.EventID)+`"`)
	return a.RoundTrip(r)
}

func (f *transport) dial(t *testing.T, o *office) *client.Client {
	t.Helper()
	return dialBy(t, o, f)
}

// wall blocks requests with results that contain a text.
type wall struct {
	blocks  string
	blocked int
}

func (w *wall) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(body, []byte(`"phase":"result"`)) && bytes.Contains(body, []byte(w.blocks)) {
		w.blocked++
		return fakeservice.Answer{Status: http.StatusForbidden, Body: "<html>"}.RoundTrip(r)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return http.DefaultTransport.RoundTrip(r)
}

func dialBy(t *testing.T, o *office, f http.RoundTripper) *client.Client {
	t.Helper()
	followNone := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c, err := client.New(client.Config{BaseURL: o.url, Token: "t", HTTP: &http.Client{Transport: f, CheckRedirect: followNone},
		Retry: client.Retry{Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A result whose event is refused moves to the file of refused events. After any other answer except success it stays in
// the queue. Hooks and the gateway send their results by Flush too.
func TestAnswersToResults(t *testing.T) {
	for _, a := range fakeservice.Answers(t, "../../testdata/answers.json") {
		if a.Sent != "alone" {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			o, d, dir := newOffice(t), &deed{}, t.TempDir()
			f := &transport{&a, event.PhaseResult}
			g := guarded(t, o, dir, func(c *Config) { c.Client, c.FlushLater = f.dial(t, o), true })
			if _, err := g.Run(t.Context(), refundAction("k"), d.do); err != nil || d.done != 1 {
				t.Fatalf("got %v, done %d times", err, d.done)
			}
			err := g.Flush(t.Context())
			refused, _ := os.ReadFile(filepath.Join(dir, "refused.ndjson"))
			got := map[bool]string{true: "kept", false: "stored"}[g.Journal.Queued() > 0]
			if len(refused) > 0 {
				got += "refused"
			}
			want := map[string]string{"stored": "stored", "kept": "kept", "refused": "storedrefused"}[a.Verdict]
			if got != want || (err == nil) != (a.Verdict == "stored") {
				t.Fatalf("got %s, %v", got, err)
			}
			if a.Verdict != "refused" {
				return
			}
			var line refusedLine
			if err := json.Unmarshal(refused, &line); err != nil || line.Status != a.Status || line.Message == "" {
				t.Errorf("got %s, %v", refused, err)
			}
			if _, err := event.Parse(line.Event, event.Options{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// An act runs only after an answer that says that its intent is stored, and another answer makes no other intent.
func TestAnswersToIntents(t *testing.T) {
	for _, a := range fakeservice.Answers(t, "../../testdata/answers.json") {
		if a.Sent != "alone" || a.Verdict == "stored" {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			o, d := newOffice(t), &deed{}
			f := &transport{&a, event.PhaseIntent}
			g := guarded(t, o, t.TempDir(), func(c *Config) { c.Client = f.dial(t, o) })
			var undecided *NotDecidedError
			if _, err := g.Run(t.Context(), refundAction("k"), d.do); !errors.As(err, &undecided) || d.done != 0 {
				t.Fatalf("got %v, done %d times", err, d.done)
			}
			f.answer = nil
			if ran, err := g.Run(t.Context(), refundAction("k"), d.do); err != nil || d.done != 1 || ran.EventID != undecided.Event {
				t.Errorf("again: got %+v, %v, done %d times; the first intent was %s", ran, err, d.done, undecided.Event)
			}
			wantLedger(t, o, "intent", "result ok")
		})
	}
}

// An event that can't be written to the file of refused events stays in the queue.
func TestRefusedFileFails(t *testing.T) {
	for _, a := range fakeservice.Answers(t, "../../testdata/answers.json") {
		if a.Verdict != "refused" {
			continue
		}
		o, d, dir := newOffice(t), &deed{}, t.TempDir()
		f := &transport{&a, event.PhaseResult}
		g := guarded(t, o, dir, func(c *Config) { c.Client, c.FlushLater = f.dial(t, o), true })
		g.Journal.options.RefusedFile = filepath.Join(dir, "no", "folder")
		if _, err := g.Run(t.Context(), refundAction("k"), d.do); err != nil {
			t.Fatal(err)
		}
		if err := g.Flush(t.Context()); !errors.Is(err, os.ErrNotExist) || g.Journal.Queued() != 1 {
			t.Errorf("got %v, %d queued", err, g.Journal.Queued())
		}
		return
	}
}

// An event that a proxy never lets through stays in the queue, and the others are sent. If the proxy lets no event through, a
// flush ends soon.
func TestBlockedResult(t *testing.T) {
	o, d, w := newOffice(t), &deed{}, &wall{blocks: "call-3"}
	g := guarded(t, o, t.TempDir(), func(c *Config) { c.Client, c.FlushLater = dialBy(t, o, w), true })
	for i := range 10 {
		a := refundAction(fmt.Sprint("k", i))
		a.Trace = id.Trace(fmt.Sprint("call-", i))
		if _, err := g.Run(t.Context(), a, d.do); err != nil {
			t.Fatal(err)
		}
	}
	var answer *client.Error
	if err := g.Flush(t.Context()); !errors.As(err, &answer) || answer.Status != http.StatusForbidden || g.Journal.Queued() != 1 {
		t.Errorf("one is blocked: got %v, %d queued", err, g.Journal.Queued())
	}
	w.blocks = ""
	if err := g.Flush(t.Context()); err == nil || g.Journal.Queued() != 1 {
		t.Errorf("still: got %v, %d queued", err, g.Journal.Queued())
	}
	for i := range 10 {
		if _, err := g.Run(t.Context(), refundAction(fmt.Sprint("more", i)), d.do); err != nil {
			t.Fatal(err)
		}
	}
	w.blocked = 0
	if err := g.Flush(t.Context()); err == nil || g.Journal.Queued() != 11 || w.blocked > 2+maxBlocked {
		t.Errorf("all are blocked: got %v, %d queued, %d requests", err, g.Journal.Queued(), w.blocked)
	}
	w.blocks = "nothing"
	if err := g.Flush(t.Context()); err != nil || g.Journal.Queued() != 0 {
		t.Errorf("in the end: got %v, %d queued", err, g.Journal.Queued())
	}
}

// However many events a proxy never lets through, the events after them are sent by later flushes.
func TestManyBlockedResults(t *testing.T) {
	o, d, w := newOffice(t), &deed{}, &wall{blocks: "blocked-"}
	g := guarded(t, o, t.TempDir(), func(c *Config) { c.Client, c.FlushLater = dialBy(t, o, w), true })
	const blocked, others = 2*maxBlocked + 1, 3
	for i := range blocked + others {
		a := refundAction(fmt.Sprint("k", i))
		a.Trace = id.Trace(fmt.Sprint("blocked-", i))
		if i >= blocked {
			a.Trace = id.Trace(fmt.Sprint("other-", i))
		}
		if _, err := g.Run(t.Context(), a, d.do); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		w.blocked = 0
		if err := g.Flush(t.Context()); err == nil || w.blocked > 3+maxBlocked {
			t.Errorf("got %v after %d blocked requests", err, w.blocked)
		}
	}
	if n := g.Journal.Queued(); n != blocked {
		t.Errorf("%d queued, want %d", n, blocked)
	}
	w.blocks = "nothing"
	if err := g.Flush(t.Context()); err != nil || g.Journal.Queued() != 0 {
		t.Errorf("in the end: got %v, %d queued", err, g.Journal.Queued())
	}
}
