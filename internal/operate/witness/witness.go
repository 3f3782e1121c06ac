// Package witness asks witnesses (C2SP tlog-witness) to cosign the checkpoints of
// the ledgers, keeps what they sign, and says which checkpoint to show. The
// service has witnesses that are asked about every ledger; an organization may
// name more, and its own quorum.
//
// Invariants:
//
//   - Nobody who appends waits for a witness, but for the first event that a ledger
//     takes since it was read from the store, and that for a bounded time (Confirm):
//     the ledgers tell that they moved, and everything else happens behind them.
//   - Only a line that verifies under the configured key and key hash, over the
//     very checkpoint that was sent, is kept. All other lines are dropped.
//   - What is kept of a ledger only grows: a larger checkpoint, or the same with
//     more cosignatures. It is durable before it is shown.
//   - One round at a time is about a ledger, so there is one request at a time of
//     a ledger and an address, whatever keys are configured for it, and all its
//     witnesses are asked about one and the same checkpoint.
//   - What a witness answers about a ledger holds up no other ledger. Only no answer,
//     the wish to be left alone, and failures about several ledgers in a row that it
//     cosigned before count for the witness as a whole.
//   - The last size that a witness acknowledged is a hint. What the witness says
//     itself wins.
//   - A witness that twice in a row knows of a tree that ours does not extend
//     freezes the ledger.
//   - A ledger that is read-only because its anchor is lost is shown to witnesses only
//     to be confirmed (Options.Anchor), and in no way that lets them extend what they know.
//   - No goroutine, timer or memory is held for a ledger that did not move, but for
//     one that a witness refused, as long as there is room. What is in memory, and how
//     much is under way, is bounded; what finds no room is found again by a sweep.
package witness

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/keylock"
	"github.com/agentledger/agentledger/internal/telemetry"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/trust"
)

// Store keeps what was cosigned and lists the ledgers.
type Store interface {
	storage.RecordStore
	Head(ctx context.Context, t id.Tenant) (storage.Head, error)
	Tenants(ctx context.Context) iter.Seq2[id.Tenant, error]
}

// Organizations tells what an organization wants of witnesses (package org).
type Organizations interface {
	Witnessing(ctx context.Context, t id.Tenant) (org.Witnessing, error)
}

// Client calls witnesses (package egress).
type Client interface {
	Post(ctx context.Context, address string, header http.Header, body []byte) (egress.Answer, error)
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
	AlarmOnly  bool          // a contradiction is told to the operator and freezes nothing
	Anchor     bool          // a quorum that confirms a head stands in for an anchor that is lost

	Interval time.Duration // between two rounds about a ledger; default 2 s
	Sweep    time.Duration // between two looks at all ledgers; default 1 h
	Rounds   int           // under way at a time; default 256
	Pending  int           // ledgers in memory that wait or are being asked about; default 65,536

	Logger  *slog.Logger          // default: discards
	Metrics prometheus.Registerer // default: none
	Clock   func() time.Time      // default: time.Now
}

func (o Options) withDefaults() Options {
	if o.Service == nil {
		o.Service = &trust.Policy{Quorum: trust.None}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Interval = orDefault(o.Interval, 2*time.Second)
	o.Sweep = orDefault(o.Sweep, time.Hour)
	o.Rounds = orDefault(o.Rounds, 256)
	o.Pending = orDefault(o.Pending, 1<<16)
	return o
}

func orDefault[T int | time.Duration](v, d T) T {
	if v == 0 {
		return d
	}
	return v
}

const (
	// viewAge is how old the knowledge of what is stored may be when it is shown.
	viewAge = time.Second
	// staleView is how much older it may be while the store does not answer: what is
	// kept of a ledger only grows, so that an older view shows fewer cosignatures and
	// nothing that is wrong.
	staleView = 24 * time.Hour
)

// Witnesses is the witnesses of all ledgers of a store. Its methods may be called
// concurrently.
type Witnesses struct {
	Options
	metrics *metrics
	rare    *slog.Logger // of lines that many ledgers, or those who name witnesses, can cause
	base    *force       // where an organization has no policy of its own

	ownForces *cache.Map[id.Tenant, *force]
	ownSlots  chan struct{} // shared: they can't crowd out the service's witnesses

	agenda  *agenda
	views   *cache.Loading[id.Tenant, *view]
	asking  keylock.Set[id.Tenant] // one round, or Confirm, of a ledger at a time
	writing keylock.Set[id.Tenant] // of one ledger's record at a time
}

// New returns the witnesses of a store. Nobody is asked before Run.
func New(o Options) *Witnesses {
	o = o.withDefaults()
	w := &Witnesses{
		Options: o, metrics: newMetrics(o.Metrics), rare: telemetry.WithoutRepeats(o.Logger),
		ownForces: newOwnForces(), ownSlots: make(chan struct{}, ownAsks),
		agenda: newAgenda(o.Pending, o.Rounds),
		views:  cache.NewLoading(cache.LoadingOptions[id.Tenant, *view]{MaxAge: viewAge, Stale: staleView, Limit: 1 << 16, Clock: o.Clock}),
	}
	w.base = w.baseForce()
	w.metrics.watch(o.Metrics, w)
	return w
}
