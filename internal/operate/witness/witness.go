// Package witness asks witnesses (C2SP tlog-witness) to cosign the checkpoints of the
// ledgers, stores the cosignatures, and chooses the checkpoint to show. The service has
// witnesses for all ledgers. An organization may name more, with its own quorum.
//
// Invariants:
//
//   - Appends do not wait for witnesses. The one exception is the first event after a
//     ledger was loaded, which waits for a bounded time (Confirm). The ledgers report
//     that they moved, and everything else happens later.
//   - Only a line that verifies under the configured key and key hash, over exactly the
//     submitted checkpoint, is stored. All other lines are dropped.
//   - The stored state of a ledger only grows: a larger checkpoint, or the same one
//     with more or newer cosignatures. It is durable before it is shown.
//   - The witnesses of a ledger that does not move are asked again once an hour, so
//     that cosignatures show how old a view is. These rounds are spread over the hour,
//     and they yield to those of ledgers that move.
//   - A ledger has one round at a time. So a ledger has one request at a time to an
//     address, with any number of keys, and all its witnesses get the same checkpoint.
//   - An answer about one ledger does not delay other ledgers. A witness as a whole
//     rests only after no answer, after an answer that asks for a pause, after 429 to
//     the only call in flight, or after failures about several ledgers in a row that it
//     cosigned before. A witness that is busy otherwise gets fewer calls at a time.
//   - The last size that a witness acknowledged is a hint. The answer of the witness
//     overrides it.
//   - A ledger is frozen when a witness says twice in a row that it knows a tree that
//     the ledger does not extend.
//   - A ledger that is read-only because its anchor is lost is submitted only to be
//     confirmed (Options.Anchor). The witnesses can't extend their tree by that
//     request.
//   - An idle ledger holds no goroutine, timer or memory. The exception is a ledger
//     that a witness refused, as long as there is room. Memory and concurrent work are
//     bounded. A sweep finds the ledgers that found no room.
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

// Store keeps the cosigned checkpoints and lists the ledgers.
type Store interface {
	storage.RecordStore
	Head(ctx context.Context, t id.Tenant) (storage.Head, error)
	Tenants(ctx context.Context) iter.Seq2[id.Tenant, error]
}

// Client calls witnesses (package egress).
type Client interface {
	Post(ctx context.Context, address string, header http.Header, body []byte) (egress.Answer, error)
}

// Organizations returns the witness settings of an organization (package org). Tests that have only logs implement it themselves.
type Organizations interface {
	Witnessing(ctx context.Context, t id.Tenant) (org.Witnessing, error)
}

// Options configure New. The first four are required.
type Options struct {
	Store         Store
	Ledgers       *log.Ledgers
	Organizations Organizations
	Client        Client

	Service    *trust.Policy // the service's witnesses, with URLs, without logs (Rules.CheckService); default: none
	FailClosed bool          // of organizations without a policy of their own, see Cosigned
	MaxLag     time.Duration // see Cosigned; 0 asks for the newest checkpoint
	AlarmOnly  bool          // a contradiction is logged and freezes no ledger
	Anchor     bool          // a quorum that confirms a head replaces an anchor that is lost

	Interval time.Duration // between two rounds about a ledger; default 2 s
	Sweep    time.Duration // between two sweeps over all ledgers; default 1 h
	Refresh  time.Duration // age at which cosignatures of a ledger that does not move are renewed, at the latest; default 1 h
	Rounds   int           // concurrent rounds; default 256
	Pending  int           // ledgers in memory, waiting or in a round; default 65,536

	Logger  *slog.Logger          // default: discards
	Metrics prometheus.Registerer // default: none
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
	// viewAge is how old a view of the store may be when it is shown.
	viewAge = time.Second
	// staleView is the additional age while the store does not answer. An older view has
	// fewer cosignatures and is still right, because the stored state only grows.
	staleView = 24 * time.Hour
)

// Witnesses asks the witnesses of all ledgers of a store. Its methods may be called
// concurrently.
type Witnesses struct {
	Options
	metrics *metrics
	rare    *slog.Logger  // for lines that many ledgers, or settings of organizations, can cause
	base    *activePolicy // where an organization has no policy of its own

	ownPolicies *cache.Map[id.Tenant, *activePolicy]
	ownSlots    chan struct{} // shared, so that they can't crowd out the service's witnesses

	queue   *roundQueue
	quiet   chan []datedLedger // from each sweep to refreshRepeatedly
	oldest  atomic.Int64       // since when a quorum has cosigned, of the ledger for which that is longest ago; 0: none
	views   *cache.Loading[id.Tenant, *view]
	asking  syncs.KeyLocks[id.Tenant] // one round, or Confirm, of a ledger at a time
	writing syncs.KeyLocks[id.Tenant] // of one ledger's record at a time
}

// New returns the witnesses of a store. It sends no request before Run.
func New(o Options) *Witnesses {
	o = o.withDefaults()
	w := &Witnesses{
		Options: o, metrics: newMetrics(o.Metrics), rare: telemetry.WithoutRepeats(o.Logger),
		ownPolicies: newOwnPolicies(), ownSlots: make(chan struct{}, ownAsks),
		queue: newRoundQueue(o.Pending, o.Rounds), quiet: make(chan []datedLedger, 1),
		views: cache.NewLoading(cache.LoadingOptions[id.Tenant, *view]{
			MaxAge: viewAge, Stale: staleView, Limit: 1 << 16, Clock: o.Clock}),
	}
	w.base = w.newServicePolicy()
	w.queue.alone = len(w.base.targets) == 0
	w.metrics.registerGauges(o.Metrics, w)
	return w
}
