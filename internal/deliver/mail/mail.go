// Package mail sends messages by SMTP: a message is written together with its cause, and sent later, with retries. It
// hides the queue, the sealing of messages and the SMTP dialogue.
//
// Invariants:
//
//   - A message is committed in the write of its cause, or neither is.
//   - A message is sent at least once, unless every attempt fails. It is deleted after the last attempt, when it
//     expires, or as soon as the server rejects it permanently. The log and a metric report that.
//   - Passwords and texts cross the network only by TLS, unless the server is on this machine.
//   - A caller's text never becomes a header, a command or a second recipient.
//   - Messages are sealed in the store, because they contain links that grant access. Addresses and texts are in no log
//     line and no error.
//   - An address that does not belong to a member gets at most one mail in 10 minutes and five a day, and an
//     organization causes at most DailyMails such mails a day, counted over all nodes. Callers count such a mail before
//     they write it (CountStranger).
//   - At most four messages are in flight, so a server that hangs uses at most four connections.
package mail

import (
	"context"
	"fmt"
	"net/mail"
	"net/url"
	"strings"
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

// Message is a mail to one recipient.
type Message struct {
	To      string     `json:"to"` // a bare address; "" for a message that is deleted when it is due
	Subject string     `json:"subject"`
	Text    string     `json:"text"`
	Until   id.Instant `json:"until"` // when it expires; 0: a day after it is written

	From        string `json:"from_name,omitzero"`   // shown next to the sender's address; "" for none
	HTML        string `json:"html,omitzero"`        // a document with the content of Text; "" for a mail of plain text
	Unsubscribe string `json:"unsubscribe,omitzero"` // URL of the page that turns these mails off; "" if they cannot be

	Shows []string `json:"-"` // approvals whose payloads' texts it contains (EraseTexts)
}

// dayLong is the lifetime of messages without Until, in milliseconds.
const dayLong id.Instant = 24 * 3_600_000

// Bounds of a message, in code points.
const (
	maxAddress = 254
	maxSubject = 200
	maxText    = 10_000
	maxFrom    = 250
	maxHTML    = 50_000
	maxURL     = 2_000
)

// Check returns fault.Invalid for a message that WriteMessages refuses: a text is too long, or could become a header or a
// command.
func (m Message) Check() error {
	if m.To != "" {
		parsed, err := mail.ParseAddress(m.To)
		if err != nil || parsed.Name != "" || parsed.Address != m.To || !textcheck.Plain(m.To, 3, maxAddress) {
			return fault.New(fault.Invalid, "The e-mail address is malformed")
		}
	}
	if !textcheck.Plain(m.Subject, 1, maxSubject) || !textcheck.Within(m.Text, 1, maxText) ||
		!textcheck.Plain(m.From, 0, maxFrom) || !textcheck.Within(m.HTML, 0, maxHTML) || !isLink(m.Unsubscribe) {
		return fault.New(fault.Invalid, "The message is malformed")
	}
	return nil
}

// isLink reports whether a text can be the URL of a header, or is "".
func isLink(s string) bool {
	if s == "" {
		return true
	}
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && len(s) <= maxURL && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || r == '<' || r == '>'
	})
}

// Transport passes messages to a mail server. Server implements it.
type Transport interface {
	// Send passes a message to the server. It returns ErrRefused (wrapped) if a retry cannot succeed.
	Send(ctx context.Context, m Message) error
}

// Options configure New. The first two are required.
type Options struct {
	Records storage.RecordStore
	Keyring *seal.Keyring

	Transport Transport // nil: no mail is sent, and Enabled is false
	// DailyMails is the number of mails to strangers that an organization may cause in a day; 0: DefaultDailyMails.
	DailyMails int
	Clock      func() time.Time      // default: time.Now
	Metrics    prometheus.Registerer // default: none
}

// Outbox contains the messages of a store. Its methods may be called concurrently.
type Outbox struct {
	Options
	stored  records.Store[storedMessage]
	due     schedule.Index
	results *prometheus.CounterVec
	slots   *schedule.Slots
}

func (o *Outbox) currentTime() id.Instant { return id.InstantOf(o.Clock()) }

const (
	// kindMail has one record for each message that waits, by its name, in the partition of its cause.
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
	Shows  []string   `json:"shows,omitempty"` // approvals
}

// EraseTexts deletes the unsent messages of an organization that contain texts of an approval that is gone, and returns
// how many. Messages that are being sent are not called back.
func (o *Outbox) EraseTexts(
	ctx context.Context, t id.Tenant, gone func(ctx context.Context, t id.Tenant, approval string) (bool, error),
) (deleted int, err error) {
	for m, err := range o.stored.Scan(ctx, t, records.Range{}, records.All) {
		if err != nil {
			return deleted, err
		}
		for _, approval := range m.Value.Shows {
			erased, err := gone(ctx, t, approval)
			if err != nil {
				return deleted, err
			}
			if !erased {
				continue
			}
			change := storage.Change{Kind: kindMail, Key: m.Key, If: storage.AnyVersion, Forget: true}
			if err := o.Records.Write(ctx, t, []storage.Change{change}); err != nil {
				return deleted, records.Unreadable(unreadableMessage, "erase mail", err)
			}
			deleted++
			break
		}
	}
	return deleted, nil
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
		Help: "Attempts to send a mail by result: sent, failed (will be retried), dead (given up).",
	}, []string{"result"})
	o.Metrics.MustRegister(results)
	return &Outbox{
		Options: o, results: results,
		stored: records.New[storedMessage](o.Records, kindMail, unreadableMessage),
		due:    schedule.Index{Records: o.Records, Kind: kindDue},
		slots:  schedule.NewSlots(checkSlots),
	}
}

// Open calls New with the server of NewServer as the transport, or without a transport if the address is "".
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

// Enabled reports whether messages are sent. If not, callers hand out links by other means.
func (o *Outbox) Enabled() bool { return o.Transport != nil }

// Named is a message and its name, which contains no white space, semicolon or slash.
type Named struct {
	Name string
	Message
}

// WriteMessage returns the changes that send a message, as WriteMessages does.
func (o *Outbox) WriteMessage(ctx context.Context, t id.Tenant, name string, m Message) ([]storage.Change, error) {
	return o.WriteMessages(ctx, t, Named{name, m})
}

// WriteMessages returns the changes that send messages. They must be written to the partition t together with their
// cause. A message replaces an unsent message of the same name, so callers can bound the number of messages by their
// names. If one message is malformed (Message.Check), it returns fault.Invalid and no changes.
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
	if err := m.Check(); err != nil {
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
		Value: storedMessage{Sealed: sealed, NextAt: now, Until: m.Until, Shows: m.Shows}})
}

// SealedMessages describes the sealed texts of the messages that wait.
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

// ServiceRecords returns the due entry of a message in the service's own partition. Code that copies an organization
// uses it.
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

// RecordChecks returns functions, by kind, that report whether a record of this package can be decoded. An import calls
// them before it writes.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{
		kindMail: records.Check[storedMessage],
		kindDue:  records.Check[struct{}],
	}
}
