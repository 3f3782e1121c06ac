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
//   - Bodies, addresses and keys are in no log line and no error.
//
// Messages are those of Standard Webhooks (https://www.standardwebhooks.com), signed with Ed25519
// (v1a): the signature is of
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

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/schedule"
	"github.com/agentledger/agentledger/internal/seal"
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

	Clock   func() time.Time      // default: time.Now
	Metrics prometheus.Registerer // default: none
}

// Sender is the deliveries of all organizations. Its methods may be called
// concurrently.
type Sender struct {
	records          storage.RecordStore
	keyring          *seal.Keyring
	deliveries, dead records.Store[delivery]
	keys             records.Store[keyRecord]
	caller           Caller
	clock            func() time.Time
	results          *prometheus.CounterVec

	due schedule.Index

	mu       sync.Mutex
	underway map[ID]underway // deliveries that are under way
	left     bool            // one was left behind for want of room
	flown    sync.WaitGroup
	room     chan struct{} // holds one when there is room again for deliveries left behind
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
		underway: make(map[ID]underway), room: make(chan struct{}, 1),
	}
	box.deliveries, box.dead, box.keys = newStores(o.Records)
	box.due = schedule.Index{Records: o.Records, Kind: kindDue, Lane: box.laneOfReceiver}
	return box
}

// ID names a delivery: the webhook-id. Ids rise with the time they were made.
type ID string

func newDeliveryID(now id.Instant) ID { return ID(id.Rising("msg_", now)) }

// Message is the content of a delivery.
type Message struct {
	URL  string         // CheckAddress has passed
	Type string         // such as approval.approved
	Data jsontext.Value // JSON object
}

// maxURL is the length in bytes of the longest address.
const maxURL = 2048

// CheckAddress reports whether an address could be told something: fault.Invalid.
func (o *Sender) CheckAddress(address string) error {
	if len(address) > maxURL {
		return errBadAddress(errors.New("too long"))
	}
	if err := o.caller.CheckURL(address); err != nil {
		return errBadAddress(err)
	}
	return nil
}

func errBadAddress(err error) error {
	return fault.Wrap(fault.Invalid, "callback_url must be a public https address of at most 2048 bytes", err)
}

// WriteDelivery returns the records that make deliveries happen. They MUST be written to the
// organization's partition with their cause. The due records in the service's partition come first:
// one without its delivery does no harm.
func (o *Sender) WriteDelivery(
	ctx context.Context, t id.Tenant, organization id.Organization, messages ...Message,
) ([]storage.Change, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	changes, err := o.loadOrMakeKey(ctx, t, organization)
	if err != nil {
		return nil, err
	}
	entries := make([]schedule.Entry, len(messages))
	for i, m := range messages {
		name, d, err := o.newDelivery(organization, m)
		if err != nil {
			return nil, err
		}
		change, err := o.deliveries.Put(records.Versioned[delivery]{Key: string(name), Value: *d})
		if err != nil {
			return nil, err
		}
		entries[i] = d.dueEntry(t, name)
		changes = append(changes, change)
	}
	return changes, o.noteDue(ctx, entries...)
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
