// Package witness has the checkpoints of the ledgers cosigned by witnesses (C2SP tlog-witness), stores the
// cosignatures, and chooses the checkpoint to publish. The service has witnesses for all ledgers. An organization may
// add its own, with its own quorum. Scheduling, retries and the health of witnesses are hidden from callers.
//
// Invariants:
//
//   - Appends do not wait for witnesses. The only exception is the first event after a ledger was loaded, which waits
//     for a bounded time (Confirm). The ledgers report that they moved, and everything else happens later.
//   - Only a line that verifies under the configured key and key hash, over exactly the submitted checkpoint, is
//     stored. All other lines are dropped.
//   - The stored state of a ledger only grows: a larger checkpoint, or the same one with more or newer cosignatures.
//     It is durable before it is published.
//   - The witnesses of a ledger that does not move are asked again once an hour, so that cosignatures show how old a
//     view is. These rounds are spread over the hour, and yield to rounds of ledgers that move.
//   - A ledger has one round at a time. So it has at most one request in flight to an address, with any number of
//     keys, and all its witnesses get the same checkpoint.
//   - A response about one ledger does not delay other ledgers. A witness as a whole is paused only after no
//     response, a response that requests a pause, 429 to the only call in flight, or failures of several ledgers in a
//     row that it cosigned before. A witness that is busy otherwise gets fewer concurrent calls.
//   - The last size that a witness acknowledged is a hint. The response of the witness overrides it.
//   - A ledger is frozen if a witness reports twice in a row that it has seen a tree that the ledger does not extend.
//   - A ledger that is read-only because its anchor is lost is submitted only to be confirmed (Options.Anchor). The
//     witnesses cannot extend their tree by that request.
//   - An idle ledger uses no goroutine, timer or memory. The exception is a ledger that a witness rejected, as long
//     as there is capacity. Memory and concurrency are bounded. A sweep finds the ledgers that did not fit into the
//     queue.
package witness

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/telemetry"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/trust"
)

// Store stores the cosigned checkpoints and lists the ledgers.
type Store interface {
	storage.RecordStore
	Head(ctx context.Context, t id.Tenant) (storage.Head, error)
	Tenants(ctx context.Context) iter.Seq2[id.Tenant, error]
}

// Client calls witnesses. egress.Client implements it.
type Client interface {
	Post(ctx context.Context, address string, header http.Header, body []byte) (egress.Answer, error)
}

// Organizations returns the witness settings of an organization. org.Orgs implements it, and tests that have only logs.
type Organizations interface {
	Witnessing(ctx context.Context, t id.Tenant) (org.Witnessing, error)
}

// Options configure New. The first four fields are required.
type Options struct {
	Store         Store
	Ledgers       *log.Ledgers
	Organizations Organizations
	Client        Client

	Service    *trust.Policy // the service's witnesses with URLs, without logs (Rules.CheckService); may be nil
	FailClosed bool          // for organizations without their own policy, see Cosigned
	MaxLag     time.Duration // see Cosigned; 0 requires the latest checkpoint
	AlarmOnly  bool          // a contradiction is logged but does not freeze the ledger
	Anchor     bool          // a quorum that confirms a head replaces a lost anchor

	Interval time.Duration // between two rounds of a ledger; default: 2 s
	Sweep    time.Duration // between two sweeps over all ledgers; default: 1 h
	Refresh  time.Duration // maximum age of the cosignatures of a ledger that does not move; default: 1 h
	Rounds   int           // concurrent rounds; default: 256
	Pending  int           // ledgers in memory, waiting or in a round; default: 65,536

	Logger  *slog.Logger          // default: discards
	Metrics prometheus.Registerer // default: not registered
	Clock   func() time.Time      // default: time.Now
}

func (o Options) withDefaults() Options {
	o.Service = cmp.Or(o.Service, &trust.Policy{Quorum: trust.None})
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Interval = cmp.Or(o.Interval, 2*time.Second)
	o.Sweep = cmp.Or(o.Sweep, time.Hour)
	o.Refresh = cmp.Or(o.Refresh, time.Hour)
	o.Rounds = cmp.Or(o.Rounds, 256)
	o.Pending = cmp.Or(o.Pending, 1<<16)
	return o
}

const (
	// viewAge is the maximum age of a view of the store.
	viewAge = time.Second
	// staleView is the additional age while the store does not respond. An older view has fewer cosignatures and is
	// still correct, because the stored state only grows.
	staleView = 24 * time.Hour
)

// Witnesses manages the witnesses of all ledgers of a store. Its methods may be called concurrently.
type Witnesses struct {
	Options
	metrics *metrics
	rare    *slog.Logger  // for lines that many ledgers or settings of organizations can cause
	base    *activePolicy // for organizations without their own policy

	ownPolicies *cache.Map[id.Tenant, *activePolicy]
	ownSlots    chan struct{} // shared, so that they cannot crowd out the service's witnesses

	queue   *roundQueue
	quiet   chan []datedLedger // from each sweep to refreshRepeatedly
	oldest  atomic.Int64       // earliest time since which a quorum has cosigned a ledger; 0 if there is none
	views   *cache.Loading[id.Tenant, *view]
	rounds  syncs.KeyLocks[id.Tenant] // held during a round or Confirm of a ledger
	writing syncs.KeyLocks[id.Tenant] // held while a ledger's record is changed
}

// New returns the witnesses of a store. It sends no request before Run.
func New(o Options) *Witnesses {
	o = o.withDefaults()
	w := &Witnesses{
		Options: o, metrics: newMetrics(o.Metrics), rare: telemetry.WithoutRepeats(o.Logger),
		ownPolicies: newOwnPolicies(), ownSlots: make(chan struct{}, ownCalls),
		queue: newRoundQueue(o.Pending, o.Rounds), quiet: make(chan []datedLedger, 1),
		views: cache.NewLoading(cache.LoadingOptions[id.Tenant, *view]{
			MaxAge: viewAge, Stale: staleView, Limit: 1 << 16, Clock: o.Clock}),
	}
	w.base = w.newServicePolicy()
	w.queue.alone = len(w.base.targets) == 0
	w.metrics.registerGauges(o.Metrics, w)
	return w
}
