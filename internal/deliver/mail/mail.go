// Package mail sends messages to people by SMTP: a message is written with its cause and sent
// later, with retries.
//
// Invariants:
//
//   - A message lands in the write of its cause, or neither does.
//   - It is sent at least once, unless no try succeeds. After the last try, after its own end, and
//     at once when the server refuses it for good, it is deleted. The log and a metric tell that.
//   - Passwords and texts cross the network by TLS alone, unless the server is on this machine.
//   - No text of a caller makes a header, a command or a second recipient.
//   - Messages are sealed in the store, because they hold links that let people in. Addresses and
//     texts are in no log line and no error.
//   - An address that is no member gets at most one mail in 10 minutes and five a day, and an organization causes at
//     most DailyMails of them in a day, over all nodes. Callers count such a mail before they write it (CountStranger).
//   - At most four messages are under way, so a server that hangs holds four connections.
package mail

import (
	"context"
	"fmt"
	"net/mail"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/storage"
)

// Message is a mail to one person.
type Message struct {
	To      string     `json:"to"` // a bare address; "" for a message that is dropped when it is due
	Subject string     `json:"subject"`
	Text    string     `json:"text"`
	Until   id.Instant `json:"until"` // it is of no use from then on; 0: a day after it is written
}

// dayLong is how long messages without an end of their own are tried, in milliseconds.
const dayLong id.Instant = 24 * 3_600_000

// Bounds of a message, in code points.
const (
	maxAddress = 254
	maxSubject = 200
	maxText    = 10_000
)

// checkMessage refuses texts that could become headers or commands.
func (m Message) checkMessage() error {
	if m.To != "" {
		parsed, err := mail.ParseAddress(m.To)
		if err != nil || parsed.Name != "" || parsed.Address != m.To || !textcheck.Plain(m.To, 3, maxAddress) {
			return fault.New(fault.Invalid, "The e-mail address is malformed")
		}
	}
	if !textcheck.Plain(m.Subject, 1, maxSubject) || !textcheck.Within(m.Text, 1, maxText) {
		return fault.New(fault.Invalid, "The message is malformed")
	}
	return nil
}

// Transport gives messages to a mail server. Server is one.
type Transport interface {
	// Send gives a message to the server. The error is ErrRefused (wrapped) when no other try
	// could help.
	Send(ctx context.Context, m Message) error
}

// Options configure New. The first two are required.
type Options struct {
	Records storage.RecordStore
	Keyring *seal.Keyring

	Transport Transport // nil: no mail is sent, and Enabled is false
	// DailyMails is how many mails to strangers an organization causes in a day; 0: DefaultDailyMails.
	DailyMails int
	Clock      func() time.Time      // default: time.Now
	Metrics    prometheus.Registerer // default: none
}

// Outbox is the messages of a store. Its methods may be called concurrently.
type Outbox struct {
	Options
	stored  records.Store[storedMessage]
	due     schedule.Index
	results *prometheus.CounterVec
	slots   *schedule.Slots
}

func (o *Outbox) currentTime() id.Instant { return id.InstantOf(o.Clock()) }

const (
	// kindMail has one record for each message that is to be sent, by its name, in the partition
	// of its cause.
	kindMail storage.Kind = "mail"
	// kindDue has an entry (package schedule) for each message.
	kindDue storage.Kind = "mail_due"
)

// storedMessage is a message in the store.
type storedMessage struct {
	Sealed []byte     `json:"sealed"`
	NextAt id.Instant `json:"next_at"`
	Until  id.Instant `json:"until"`
	Tries  int        `json:"tries"`
}

// New returns the outbox of a store.
func New(o Options) *Outbox {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	results := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentledger_mails_total",
		Help: "Tries to send a mail: sent, failed (to be tried again), dead (given up).",
	}, []string{"result"})
	o.Metrics.MustRegister(results)
	return &Outbox{
		Options: o, results: results,
		stored: records.New[storedMessage](o.Records, kindMail, unreadableMessage),
		due:    schedule.Index{Records: o.Records, Kind: kindDue},
		slots:  schedule.NewSlots(checkSlots),
	}
}

// Open is New with the server of NewServer as the transport, and without one for the address "".
func Open(o Options, address string) (*Outbox, error) {
	if address != "" {
		server, err := NewServer(address)
		if err != nil {
			return nil, err
		}
		o.Transport = server
	}
	return New(o), nil
}

const unreadableMessage = "Mails can't be read"

// Enabled reports whether messages are sent. Else callers hand links on by other means.
func (o *Outbox) Enabled() bool { return o.Transport != nil }

// Named is a message with its name, which has no white space, semicolon or slash.
type Named struct {
	Name string
	Message
}

// WriteMessage returns the changes that make a message happen, as WriteMessages does.
func (o *Outbox) WriteMessage(ctx context.Context, t id.Tenant, name string, m Message) ([]storage.Change, error) {
	return o.WriteMessages(ctx, t, Named{name, m})
}

// WriteMessages returns the changes that make messages happen. They MUST be written to the
// partition t with their cause. A message of the same name that is not sent yet is replaced, so
// callers bound the number of messages by their names.
func (o *Outbox) WriteMessages(ctx context.Context, t id.Tenant, all ...Named) ([]storage.Change, error) {
	if len(all) == 0 {
		return nil, nil
	}
	now := o.currentTime()
	changes, entries := make([]storage.Change, len(all)), make([]schedule.Entry, len(all))
	for i := range all {
		var err error
		if changes[i], err = o.sealMessage(all[i], now); err != nil {
			return nil, err
		}
		entries[i] = schedule.Entry{At: now, Tenant: t, Name: all[i].Name}
	}
	if err := o.due.NoteEntries(ctx, entries...); err != nil {
		return nil, records.Unreadable(unreadableMessage, "write mail", err)
	}
	return changes, nil
}

func (o *Outbox) sealMessage(m Named, now id.Instant) (storage.Change, error) {
	if m.Until == 0 {
		m.Until = now + dayLong
	}
	if err := m.checkMessage(); err != nil {
		return storage.Change{}, err
	}
	text, err := json.Marshal(m.Message)
	if err != nil {
		return storage.Change{}, fmt.Errorf("write mail: %w", err)
	}
	sealed, err := o.Keyring.Seal(sealContext(m.Name), text)
	if err != nil {
		return storage.Change{}, fmt.Errorf("write mail: %w", err)
	}
	return o.stored.Put(records.Versioned[storedMessage]{Key: m.Name, Version: storage.AnyVersion,
		Value: storedMessage{Sealed: sealed, NextAt: now, Until: m.Until}})
}

// SealedMessages is where the messages that wait are.
func SealedMessages() seal.Texts {
	return seal.Texts{Kind: kindMail, Reseal: func(k *seal.Keyring, name string, value []byte) ([]byte, bool, error) {
		v, err := records.Decode[storedMessage](storage.Record{Kind: kindMail, Key: name, Value: value})
		if err != nil {
			return nil, false, err
		}
		var changed bool
		if v.Value.Sealed, changed, err = k.Reseal(sealContext(name), v.Value.Sealed); err != nil {
			return nil, false, err
		}
		resealed, err := json.Marshal(v.Value)
		return resealed, changed, err
	}}
}

func sealContext(name string) string { return "mail " + name }

// ServiceRecords returns the records of the service's own partition that stand there for one of
// an organization's records, for code that copies an organization: when a message is due.
func ServiceRecords(t id.Tenant, r storage.Record) ([]storage.Record, error) {
	if r.Kind != kindMail {
		return nil, nil
	}
	v, err := records.Decode[storedMessage](r)
	if err != nil {
		return nil, err
	}
	return []storage.Record{schedule.Entry{At: v.Value.NextAt, Tenant: t, Name: r.Key}.Record(kindDue)}, nil
}

// RecordChecks returns, by kind, what reports whether a record of this package can be read. An import asks it before it writes.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{
		kindMail: records.Check[storedMessage],
		kindDue:  records.Check[struct{}],
	}
}
