// Package webhook sends notices of events to receivers outside of the service: a delivery is written together with its
// cause, and sent later, with retries. It hides the queue, endpoints with their keys, and the selection of notices. deliver.go sends deliveries and has
// the pauses between attempts.
//
// Invariants:
//
//   - A delivery is committed in the append of its event, or neither is.
//   - A delivery is sent at least once. Each attempt is signed anew and has the same webhook-id, so that a receiver can
//     detect repetitions. After the last attempt, or as soon as no retry can succeed, the delivery becomes a dead
//     letter, which users can list and send again.
//   - A receiver that sends Retry-After is not called again before that time, but at most a day.
//   - Requests are sent only by package egress.
//   - A slow or unreachable receiver delays only its own deliveries. Of 256 slots, an organization gets at most 16, and
//     one of its receivers at most 8. The last slots of each bound are reserved for organizations and receivers that
//     use few. A backlog of one organization does not delay the turns of the others.
//   - An organization's endpoints get the notices of its approvals and runs. Notices of events, decisions, plan and
//     ledger are created at an endpoint's position in the log (package follow). At most 1,000 of these wait for one
//     endpoint: then its position waits, and no event is skipped. Each endpoint has its own key. Its address is sealed,
//     because it may contain a secret. A change of endpoints is an event.
//   - A receiver that responds with 410 or fails for five days is no longer called: its endpoint is disabled, by an
//     event. The waiting deliveries become dead letters.
//   - Bodies, addresses and keys are in no log line and no error.
//
// Messages follow Standard Webhooks (https://www.standardwebhooks.com). Messages to endpoints are signed with the
// endpoint's secret (v1, HMAC-SHA256) and with its key (v1a, Ed25519), callbacks only with the organization's key.
// After a rotation, the previous secret and key sign too for some time. Each signature is over
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
	Events    *sysevent.Appender // records changes of endpoints
	Pace      *quota.Quota       // of changes; nil: not bounded
	PublicURL string             // of the service, for links
	Mail      Mail               // reports disabled endpoints; may be nil
	Ledgers   *log.Ledgers       // source of the events of notices; may be nil
	Plans     Plans              // source of the notices of plans; may be nil

	Clock   func() time.Time      // default: time.Now
	Metrics prometheus.Registerer // default: not registered
}

// Mail sends mails to the users who manage an organization's endpoints.
type Mail interface {
	// EndpointMail returns the changes that report a disabled endpoint. They take effect when they are written to the
	// organization's partition. It returns none if the service sends no mail.
	EndpointMail(ctx context.Context, t id.Tenant, e DisabledEndpoint) ([]storage.Change, error)
}

// DisabledEndpoint is an endpoint that is no longer called.
type DisabledEndpoint struct {
	ID   EndpointID
	Host string // of its URL, whose path may be a secret
	Why  Reason
}

// Sender contains the deliveries of all organizations. Its methods may be called concurrently.
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

// New returns the deliveries of a store.
func New(o Options) *Sender {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	results := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentledger_webhook_deliveries_total",
		Help: "Attempts to deliver a webhook by result: delivered, failed (will be retried), dead (given up).",
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

// ID is the webhook-id of a delivery. IDs increase with their time of creation.
type ID string

func newDeliveryID(now id.Instant) ID { return ID(id.Rising("msg_", now)) }

// Message is the content of a delivery.
type Message struct {
	URL  string         // accepted by CheckAddress; "": to each endpoint that selects the message
	Type string         // such as approval.approved
	Data jsontext.Value // JSON object

	// For endpoints.
	Agent  id.Agent
	Tool   id.Tool
	Title  string // a sentence
	Detail string // shown unchanged; "" if none
	Card   *Card  // shown in place of Title and Detail where blocks are possible; nil if none
	Path   string // of the subject under the service's URL; "" if none
}

// maxURL bounds the length of an address in bytes.
const maxURL = 2048

// CheckAddress returns fault.Invalid if an address cannot be a receiver.
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

// WriteDelivery returns the records of deliveries: for each message with an address one, and for each other message one
// for every endpoint that selects it. They must be written to the organization's partition together with their cause.
// The due entries in the service's partition are written first: an entry without its delivery does no harm.
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

// writing collects the deliveries of one change.
type writing struct {
	sender       *Sender
	tenant       id.Tenant
	organization id.Organization
	keyed        bool             // the key of callbacks exists or is among the changes
	endpoints    *endpointsRecord // nil until they are read
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
	names, notices, err := w.sender.noticesFor(w.organization, m, w.endpoints)
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

// unreadableMessage is the message for clients if records of deliveries cannot be read.
const unreadableMessage = "Deliveries can't be read"

func errUnreadable(step string, err error) error {
	return records.Unreadable(unreadableMessage, step, err)
}
