// Package webhook sends notices of events to receivers outside: a delivery is written with its cause
// and sent later, with retries.
//
// Invariants:
//
//   - A delivery lands in the append of its event, or neither does.
//   - It is sent at least once and signed each time anew; webhook-id stays the same, so a receiver
//     can tell a repetition. After the last try, and at once where no further try could help, it
//     becomes a dead letter, which people see and may send again.
//   - A receiver that says when to come again (Retry-After) is left alone until then, for a day at
//     most.
//   - Requests go out through package egress alone.
//   - A receiver that is slow or gone delays its own deliveries only. Of 256 places an
//     organization has 16 at most and one of its receivers 8 at most. The last places of each
//     bound are for organizations and receivers with the fewest. However many deliveries of one
//     are due, the turns of the others come as if there were none.
//   - An organization's endpoints get the notices of its approvals and runs, and behind a position of
//     their own (package follow) those of events, decisions, plan and ledger. At most 1,000 of these
//     wait for one endpoint: then its position waits, and no event is skipped. Each has its own key.
//     Its address is sealed, because an address may hold a secret. A change of endpoints is an event.
//   - A receiver that answers 410, or fails for five days, is called no more: its endpoint is
//     disabled, by an event. The deliveries that wait become dead letters.
//   - Bodies, addresses and keys are in no log line and no error.
//
// Messages are those of Standard Webhooks (https://www.standardwebhooks.com). Those to endpoints are signed with the
// endpoint's secret (v1, HMAC-SHA256) and with its key (v1a, Ed25519), callbacks only with the organization's key. For
// a while after a rotation, the previous secret and key sign too. Each signature is of
//
//	webhook-id . webhook-timestamp . body
package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/log"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/follow"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/storage"
)

// Caller sends requests (package egress).
type Caller interface {
	CheckURL(address string) error
	Post(ctx context.Context, address string, header http.Header, body []byte) (egress.Answer, error)
}

// Options configure New. The first three are required.
type Options struct {
	Records storage.RecordStore
	Keyring *seal.Keyring // seals the keys that sign deliveries
	Caller  Caller

	// For endpoints.
	Events    *sysevent.Appender // states changes of endpoints
	Pace      *quota.Quota       // of changes; nil: none
	PublicURL string             // of the service, for links
	Mail      Mail               // told of endpoints that were disabled; nil: none
	Ledgers   *log.Ledgers       // whose events endpoints are told of; nil: none
	Plans     Plans              // whose thresholds endpoints are told of; nil: none

	Clock   func() time.Time      // default: time.Now
	Metrics prometheus.Registerer // default: none
}

// Mail writes to the people who look after an organization's endpoints.
type Mail interface {
	// EndpointMail returns the changes by which they are told that an endpoint was disabled, once
	// these are written to the organization's partition: none while the service has no mail.
	EndpointMail(ctx context.Context, t id.Tenant, e DisabledEndpoint) ([]storage.Change, error)
}

// DisabledEndpoint is an endpoint that is called no more.
type DisabledEndpoint struct {
	ID   EndpointID
	Host string // of its URL, whose path may be a secret
	Why  Reason
}

// Sender is the deliveries of all organizations. Its methods may be called
// concurrently.
type Sender struct {
	stores
	records   storage.RecordStore
	keyring   *seal.Keyring
	caller    Caller
	events    *sysevent.Appender
	pace      *quota.Quota
	publicURL string
	mail      Mail             // may be nil
	plans     Plans            // may be nil
	follower  *follow.Follower // may be nil
	clock     func() time.Time
	results   *prometheus.CounterVec

	due   schedule.Index
	slots *schedule.Slots

	mu      sync.Mutex
	numbers map[numbered]uint64 // of the latest attempts
}

// New returns the outbox of a store.
func New(o Options) *Sender {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	results := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentledger_webhook_deliveries_total",
		Help: "Tries to deliver a webhook: delivered, failed (to be tried again), dead.",
	}, []string{"result"})
	o.Metrics.MustRegister(results)
	box := &Sender{
		records: o.Records, keyring: o.Keyring, caller: o.Caller, clock: o.Clock, results: results,
		events: o.Events, pace: o.Pace, publicURL: o.PublicURL, mail: o.Mail, plans: o.Plans,
		stores:  newStores(o.Records),
		numbers: make(map[numbered]uint64), slots: schedule.NewSlots(checkSlots),
	}
	if o.Ledgers != nil {
		box.follower = follow.New(follow.Options{
			Records: o.Records, Ledgers: o.Ledgers, Positions: kindPosition, Due: kindPositionDue,
			Work: box.writeNotices, MaxEvents: maxBatchEvents, MaxBytes: maxBatchBytes, Clock: o.Clock,
		})
	}
	box.due = schedule.Index{Records: o.Records, Kind: kindDue, Lane: box.laneOfReceiver}
	return box
}

// ID names a delivery: the webhook-id. Ids rise with the time they were made.
type ID string

func newDeliveryID(now id.Instant) ID { return ID(id.Rising("msg_", now)) }

// Message is the content of a delivery.
type Message struct {
	URL  string         // CheckAddress has passed; "": for each endpoint that wants it
	Type string         // such as approval.approved
	Data jsontext.Value // JSON object

	// For endpoints.
	Agent  id.Agent
	Tool   id.Tool
	Title  string // a sentence, for people
	Detail string // is shown as it is; "" for none
	Path   string // of the subject under the service's URL; "" for none
}

// maxURL is the length in bytes of the longest address.
const maxURL = 2048

// CheckAddress reports whether an address could be told something: fault.Invalid.
func (o *Sender) CheckAddress(address string) error {
	if err := o.checkReceiver(address); err != nil {
		return fault.Wrap(fault.Invalid, "callback_url must be a public https address of at most 2048 bytes", err)
	}
	return nil
}

func (o *Sender) checkReceiver(address string) error {
	if len(address) > maxURL {
		return errors.New("too long")
	}
	return o.caller.CheckURL(address)
}

// WriteDelivery returns the records that make deliveries happen: one for each message with an
// address, and for each other message one for each endpoint that wants it. They MUST be written to
// the organization's partition with their cause. The due records in the service's partition come
// first: one without its delivery does no harm.
func (o *Sender) WriteDelivery(
	ctx context.Context, t id.Tenant, organization id.Organization, messages ...Message,
) ([]storage.Change, error) {
	w := &writing{sender: o, tenant: t, organization: organization}
	for i := range messages {
		if err := w.addMessage(ctx, &messages[i]); err != nil {
			return nil, err
		}
	}
	if len(w.entries) == 0 {
		return nil, nil
	}
	return w.changes, o.noteDue(ctx, w.entries...)
}

// writing gathers the deliveries of one change.
type writing struct {
	sender       *Sender
	tenant       id.Tenant
	organization id.Organization
	keyed        bool             // whether the key of callbacks is there, or among the changes
	endpoints    *endpointsRecord // nil before they are read
	changes      []storage.Change
	entries      []schedule.Entry
}

func (w *writing) addMessage(ctx context.Context, m *Message) error {
	if m.URL == "" {
		return w.addNotices(ctx, m)
	}
	if !w.keyed {
		made, err := w.sender.loadOrMakeKey(ctx, w.tenant, w.organization)
		if err != nil {
			return err
		}
		w.changes, w.keyed = append(w.changes, made...), true
	}
	name, d, err := w.sender.newDelivery(w.organization, *m)
	if err != nil {
		return err
	}
	return w.addDelivery(name, d)
}

func (w *writing) addNotices(ctx context.Context, m *Message) error {
	if w.endpoints == nil {
		stored, err := w.sender.stores.endpoints.Get(ctx, w.tenant, "")
		if err != nil {
			return err
		}
		w.endpoints = &stored.Value
	}
	names, notices, err := w.sender.noticesOf(w.organization, m, w.endpoints)
	for i := range names {
		if err == nil {
			err = w.addDelivery(names[i], notices[i])
		}
	}
	return err
}

func (w *writing) addDelivery(name ID, d *delivery) error {
	change, err := w.sender.deliveries.Put(records.Versioned[delivery]{Key: string(name), Value: *d})
	if err != nil {
		return err
	}
	w.changes, w.entries = append(w.changes, change), append(w.entries, d.dueEntry(w.tenant, name))
	return nil
}

func (o *Sender) newDelivery(organization id.Organization, m Message) (ID, *delivery, error) {
	now := o.currentTime()
	body, err := json.Marshal(struct {
		Type      string         `json:"type"`
		Timestamp id.Instant     `json:"timestamp"`
		Data      jsontext.Value `json:"data"`
	}{m.Type, now, m.Data})
	if err != nil {
		return "", nil, fmt.Errorf("write delivery: %w", err)
	}
	return newDeliveryID(now), &delivery{
		Organization: organization,
		URL:          m.URL,
		Type:         m.Type,
		Body:         body,
		CreatedAt:    now,
		NextAt:       now,
	}, nil
}

func (o *Sender) currentTime() id.Instant { return id.InstantOf(o.clock()) }

// unreadableMessage is the message for a client when records of deliveries can't be read.
const unreadableMessage = "Deliveries can't be read"

func errUnreadable(step string, err error) error {
	return records.Unreadable(unreadableMessage, step, err)
}
