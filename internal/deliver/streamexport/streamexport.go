// Package streamexport sends the events of an organization to one receiver by OTLP/HTTP: as OCSF API Activity or
// CloudEvents in log records, or the calls among them as spans. It hides the formats, the requests and the retries.
// Package follow stores the position and gives it the events that come next.
//
// Invariants:
//
//   - Events are sent in order and at least once. The position moves after the receiver has accepted a batch, so a
//     crash between the two repeats the batch. No failure moves the position, however long it lasts: only a user can
//     move it.
//   - Records that the receiver rejects in a successful response (partial success) are counted and not sent again, as
//     OTLP demands.
//   - A batch has at most 512 events or about 1 MiB of text, and less after a response 413.
//   - Requests are sent only by package egress. Redirects are failures.
//   - Payloads are sent only if the organization asked for them.
//   - The address and the headers are sealed. Values of headers are never shown, and they are not kept if the address
//     changes to another host.
//   - All failures without a response have the same message, and tests run in the background. So the author of an
//     address does not learn which names the operator's network has.
//   - A change of the export is an event of the organization's ledger.
package streamexport

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/log"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/follow"
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

// Options configure New. The first five are required.
type Options struct {
	Records storage.RecordStore
	Ledgers *log.Ledgers
	Keyring *seal.Keyring
	Caller  Caller
	Events  *sysevent.Appender // records changes

	Pace    *quota.Quota          // of changes; nil: not bounded
	Clock   func() time.Time      // default: time.Now
	Metrics prometheus.Registerer // default: not registered
}

// Exporter contains the exports of all organizations. Its methods may be called concurrently.
type Exporter struct {
	Options
	exports  records.Store[exportRecord]
	statuses records.Store[statusRecord]
	tests    records.Store[testRecord]
	follower *follow.Follower
	metrics  *metrics
}

// The bounds of a batch.
const (
	maxEvents = 512
	maxBytes  = 1 << 20
)

// New returns the exports of a store.
func New(o Options) *Exporter {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	x := &Exporter{
		Options:  o,
		exports:  records.New[exportRecord](o.Records, kindExport, unreadableMessage),
		statuses: records.New[statusRecord](o.Records, kindStatus, unreadableMessage),
		tests:    records.New[testRecord](o.Records, kindTest, unreadableMessage),
	}
	x.metrics = newMetrics(o.Metrics, x.currentTime)
	x.follower = follow.New(follow.Options{
		Records: o.Records, Ledgers: o.Ledgers, Positions: kindPosition, Due: kindDue, Work: x.sendBatch,
		MaxEvents: maxEvents, MaxBytes: maxBytes, Clock: o.Clock,
	})
	return x
}

// Run sends events until ctx ends. It returns when no request is in flight.
func (x *Exporter) Run(ctx context.Context, logger *slog.Logger) { x.follower.Run(ctx, logger) }

// Sweep starts the requests that are due, as far as there are slots.
func (x *Exporter) Sweep(ctx context.Context, logger *slog.Logger) error {
	return x.follower.Sweep(ctx, logger)
}

// FurthestBehind returns at most n organizations whose exports are behind, the one with the oldest unsent event first.
func (x *Exporter) FurthestBehind(n int) []id.Tenant { return x.metrics.furthestBehind(n) }

func (x *Exporter) currentTime() id.Instant { return id.InstantOf(x.Clock()) }

// unreadableMessage is the message for clients if records of exports cannot be read.
const unreadableMessage = "The stream export can't be read"
