package publicapi_test

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/operate/loglist"
)

const logListPath = "/v1/public/witness-network/logs/v0"

// madeList is a fixed list.
type madeList struct{ made *loglist.Made }

func (l *madeList) Current() *loglist.Made { return l.made }

// noLogs is the list of a service without logs.
func noLogs() *madeList {
	text := []byte("logs/v0\n")
	return &madeList{&loglist.Made{Text: text, Gzip: text, TextTag: `"00000000000000000000000000000001"`, GzipTag: `"00000000000000000000000000000002"`}}
}

// The list is served if the operator has enabled it, and not before all logs are known.
func TestLogListIsMade(t *testing.T) {
	w := newWorld(t)
	w.lists = nil
	w.serve(w.agents)
	w.missing(logListPath)
	w.lists = new(madeList)
	w.serve(w.agents)
	w.failed(logListPath, http.StatusServiceUnavailable, "The list of logs is being built; try again")
}

// The logs of two organizations while they are rotated, frozen and succeeded: the list contains origins and keys, but
// no slugs. The other organization does not affect the entry of a log.
func TestLogList(t *testing.T) {
	w := newWorld(t)
	list := loglist.New(loglist.Options{Ledgers: w.ledgers, Store: w.store, Contact: "ops@log.example", PerDay: 8640, Interval: time.Millisecond})
	w.lists = list
	w.serve(w.agents)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); list.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	entry := func(o *owner) string {
		keys := w.state(o).LogKeys()
		return "\nvkey " + keys[len(keys)-1].Verifier.String() + "\nqpd 8640\ncontact ops@log.example\n"
	}
	shows := func(step string, entries ...string) {
		t.Helper()
		want := "logs/v0\n" + strings.Join(entries, "")
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
			if m := list.Current(); m != nil && string(m.Text) == want {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s: got %q, want %q", step, list.Current().Text, want)
			}
		}
		answer := w.get(logListPath)
		if answer.Code != http.StatusOK || answer.Body.String() != want || answer.Header().Get("Content-Type") != "text/plain; charset=utf-8" || answer.Header().Get("Cache-Control") != "public, max-age=60" {
			t.Errorf("%s: got %d %v %s", step, answer.Code, answer.Header(), answer.Body)
		}
		if strings.Contains(want, "red") || strings.Contains(want, "blue") {
			t.Errorf("%s: a slug is shown", step)
		}
	}
	blue := entry(&w.blue) // its id is the smaller one
	shows("founded", blue, entry(&w.red))
	tag := w.get(logListPath).Header().Get("ETag")
	if answer := w.do(http.MethodGet, logListPath, "If-None-Match: "+tag); answer.Code != http.StatusNotModified || answer.Body.Len() != 0 {
		t.Errorf("got %d", answer.Code)
	}
	packed := w.do(http.MethodGet, logListPath, "Accept-Encoding: gzip")
	r, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != string(list.Current().Text) || packed.Header().Get("ETag") == tag || packed.Header().Get("Vary") != "Accept-Encoding" {
		t.Errorf("gzip: got %q, %v, %v", text, err, packed.Header())
	}
	before := entry(&w.red)
	w.rekey(&w.red, "rotated", w.ledgers.RotateLogKey)
	if entry(&w.red) == before {
		t.Fatal("the key is the old one")
	}
	shows("while two keys sign", blue, entry(&w.red))
	w.rekey(&w.red, "retired", w.ledgers.RetireLogKey)
	shows("rotated", blue, entry(&w.red))
	if err := w.ledgers.Freeze(t.Context(), w.red.tenant, "a test"); err != nil {
		t.Fatal(err)
	}
	shows("frozen", blue)
	heir, err := w.ledgers.Succeed(t.Context(), w.state(&w.red))
	if err != nil {
		t.Fatal(err)
	}
	shows("succeeded", blue, "\nvkey "+heir.VerifierKey().String()+"\nqpd 8640\ncontact ops@log.example\n")
}
