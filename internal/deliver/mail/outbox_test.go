package mail_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/mail"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

const red id.Tenant = 11

// world has an outbox with a real mail server.
type world struct {
	t      testing.TB
	store  *storagetest.Model
	server *mailServer
	outbox *mail.Outbox
	logs   strings.Builder
	keys   *seal.Keyring

	mu  sync.Mutex
	now time.Time
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, store: storagetest.NewModel(), server: startServer(t, true, false),
		now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	var err error
	if w.keys, err = seal.NewKeyring(seal.NewKey()); err != nil {
		t.Fatal(err)
	}
	w.outbox = w.open()
	return w
}

// open returns the outbox of another process.
func (w *world) open() *mail.Outbox {
	return mail.New(mail.Options{Records: w.store, Keyring: w.keys, Clock: w.clock,
		Transport: w.server.newTransport(w.t, "smtp://mail.example", "")})
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// write writes a message with a name, valid for a day.
func (w *world) write(t id.Tenant, name string, m mail.Message) {
	w.t.Helper()
	if m.Until == 0 {
		m.Until = id.InstantOf(w.clock().Add(24 * time.Hour))
	}
	changes, err := w.outbox.WriteMessage(w.t.Context(), t, name, m)
	if err == nil {
		err = w.store.Write(w.t.Context(), t, changes)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// sweep sends due messages and waits for them.
func (w *world) sweep() {
	w.t.Helper()
	mail.SweepWhole(w.t, w.outbox, slog.New(slog.NewTextHandler(&w.logs, nil)))
}

func (w *world) count(t id.Tenant, kind storage.Kind) int {
	w.t.Helper()
	found, err := w.store.Scan(w.t.Context(), t, kind, "", "", 10_000)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(found)
}

func TestOutbox(t *testing.T) {
	w := newWorld(t)
	w.write(red, "invitation-1", message())
	w.write(id.Service, "reset-1", mail.Message{To: "bob@example.org", Subject: "s", Text: "t"})
	w.write(id.Service, "decoy-1", mail.Message{Subject: "s", Text: "t"})
	for _, r := range [][]storage.Record{w.scan(red), w.scan(id.Service)} {
		for i := range r {
			if strings.Contains(string(r[i].Value), "example.org") || strings.Contains(string(r[i].Value), "token") {
				t.Errorf("the store holds a text: %s", r[i].Value)
			}
		}
	}
	w.sweep()
	if got := w.server.messages(); len(got) != 2 {
		t.Errorf("got %+v", got)
	}
	w.sweep()
	if n := len(w.server.messages()) + w.count(red, "mail") + w.count(id.Service, "mail") + w.count(id.Service, "mail_due"); n != 2 {
		t.Errorf("%d messages and leftovers", n)
	}
}

func (w *world) scan(t id.Tenant) []storage.Record {
	w.t.Helper()
	found, err := w.store.Scan(w.t.Context(), t, "mail", "", "", 100)
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

// If the server rejects a message temporarily, the message waits and is sent later, by another process.
func TestOutboxTriesAgain(t *testing.T) {
	w := newWorld(t)
	w.server.refuse(func(string) error { return &smtp.SMTPError{Code: 451, Message: "later"} })
	w.write(red, "m", message())
	for range 3 {
		w.sweep()
		w.sweep() // not due
		w.pass(10 * time.Minute)
	}
	if n := w.count(red, "mail"); n != 1 || len(w.server.messages()) != 0 {
		t.Errorf("got %d", n)
	}
	if n := w.count(id.Service, "mail_due"); n != 1 {
		t.Errorf("got %d entries", n)
	}
	w.server.refuse(nil)
	w.outbox = w.open()
	w.pass(20 * time.Minute)
	w.sweep()
	if len(w.server.messages()) != 1 || w.count(red, "mail") != 0 {
		t.Errorf("got %d, %d stored", len(w.server.messages()), w.count(red, "mail"))
	}
	if log := w.logs.String(); strings.Contains(log, "example.org") || !strings.Contains(log, "will be retried") {
		t.Errorf("the log: %s", log)
	}
}

// A message ends after its attempts, at its expiry, or when it is rejected permanently.
func TestOutboxGivesUp(t *testing.T) {
	later, never := &smtp.SMTPError{Code: 451, Message: "later"}, &smtp.SMTPError{Code: 550, Message: "never"}
	for name, c := range map[string]struct {
		reply *smtp.SMTPError
		until time.Duration
		tries int // at most
		least int
	}{
		"tries":   {later, 100 * 24 * time.Hour, 8, 8},
		"time":    {later, time.Hour, 5, 3},
		"refused": {never, time.Hour, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tries := 0
			w.server.refuse(func(string) error {
				tries++
				return c.reply
			})
			m := message()
			m.Until = id.InstantOf(w.clock().Add(c.until))
			w.write(red, "m", m)
			for range 2000 {
				w.sweep()
				w.pass(time.Minute)
			}
			if tries > c.tries || tries < c.least || w.count(red, "mail") != 0 || w.count(id.Service, "mail_due") != 0 {
				t.Errorf("got %d tries, %d stored", tries, w.count(red, "mail"))
			}
			if !strings.Contains(w.logs.String(), "given up") {
				t.Errorf("the log: %s", w.logs.String())
			}
		})
	}
}

// A later message with the same name replaces a waiting one.
func TestOutboxReplaces(t *testing.T) {
	w := newWorld(t)
	for _, text := range []string{"first", "second", "third"} {
		w.write(id.Service, "reset-acc_1", mail.Message{To: recipient, Subject: "s", Text: text})
	}
	w.sweep()
	if got := w.server.messages(); len(got) != 1 || !strings.Contains(got[0].text, "third") {
		t.Errorf("got %+v", got)
	}
	if n := w.count(id.Service, "mail_due"); n > 2 {
		t.Errorf("%d entries", n)
	}
	w.pass(2 * time.Hour)
	w.sweep()
	if n := w.count(id.Service, "mail_due"); n != 0 {
		t.Errorf("%d entries after two hours", n)
	}
}

// A message that is sealed under a lost master key, or was moved to another key, is given up.
func TestOutboxOpensItsOwnOnly(t *testing.T) {
	w := newWorld(t)
	w.write(red, "a", message())
	stored := w.scan(red)
	if err := w.store.Write(t.Context(), red, []storage.Change{{Kind: "mail", Key: "b", Value: stored[0].Value}}); err != nil {
		t.Fatal(err)
	}
	w.write(red, "b2", message())
	w.keys, _ = seal.NewKeyring(seal.NewKey())
	w.outbox = w.open()
	w.sweep()
	if len(w.server.messages()) != 0 {
		t.Errorf("got %+v", w.server.messages())
	}
}

func TestOutboxWithoutAServer(t *testing.T) {
	w := newWorld(t)
	w.outbox = mail.New(mail.Options{Records: w.store, Keyring: w.keys, Clock: w.clock})
	if w.outbox.Enabled() {
		t.Error("enabled")
	}
	w.write(red, "m", message())
	w.sweep()
	if w.count(red, "mail") != 1 {
		t.Error("the message did not wait")
	}
}
