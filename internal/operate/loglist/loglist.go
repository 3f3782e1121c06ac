// Package loglist maintains the list of the logs of a service in the format of C2SP tlog-list, so that witnesses
// discover new logs automatically. It hides how changes are detected and when the list is rendered; callers read
// Current.
//
// Invariants:
//
//   - A log is listed once, under its origin, with its latest key. For example, a log whose key is being rotated is
//     listed with the new key, because the old one ends.
//   - A log that publishes no further trees here, because it is frozen or was moved, is not listed.
//   - The list contains origins and keys, but no slug, name or address of an organization.
//   - The first list is rendered after all logs were found, so a new process never serves an incomplete list.
//   - The list is rendered again only after a log was added, removed, or got another key. That takes at most a
//     fiftieth of a processor. For example, 100,000 logs take 0.6 s, so the next list is rendered half a minute
//     later. Requests get the rendered list.
//   - The same logs and settings give the same bytes in every process. Each node renders its own list, and is
//     notified of changes on other nodes.
package loglist

import (
	"context"
	"iter"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/log"
)

// Ledgers is the part of package log that the list uses.
type Ledgers interface {
	Listing(ctx context.Context, t id.Tenant) (log.Listing, bool, error)
	Relisted() *syncs.Inbox[id.Tenant]
}

// Store is the part of a storage engine that the list uses.
type Store interface {
	Tenants(ctx context.Context) iter.Seq2[id.Tenant, error]
}

// Options configure New. Ledgers, Store, Contact and PerDay are required.
type Options struct {
	Ledgers Ledgers
	Store   Store
	Contact string // how to contact the operator: one line, not empty
	PerDay  int    // requests of a log to a witness in a day, 1 to 2^31 - 1

	Others *syncs.Inbox[id.Tenant] // logs that were added, removed or got another key on other nodes; nil if there are none

	Interval time.Duration         // minimum time between two lists; default: 1 s
	Logger   *slog.Logger          // default: discards
	Metrics  prometheus.Registerer // default: not registered
}

// List is the list of a service. Current may be called concurrently with everything else. Run must be called only once.
type List struct {
	Options
	relisted *syncs.Inbox[id.Tenant]
	found    bool                 // all logs were found; false again after missed notifications of other nodes
	changed  bool                 // keys differ from the current list
	keys     map[id.Tenant]string // vkeys of the listed logs
	pending  map[id.Tenant]struct{}
	current  atomic.Pointer[Made]
	logs     prometheus.Gauge
}

// New returns a list that follows each log that is added, removed or gets another key from now on. Run finds the
// others.
func New(o Options) *List {
	if o.Interval <= 0 {
		o.Interval = time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	l := &List{
		Options: o, relisted: o.Ledgers.Relisted(),
		keys: map[id.Tenant]string{}, pending: map[id.Tenant]struct{}{},
	}
	l.logs = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "agentledger_log_list_logs", Help: "Logs in the list for witnesses."})
	o.Metrics.MustRegister(l.logs)
	return l
}

// Current returns the latest list, or nil if none was rendered yet.
func (l *List) Current() *Made { return l.current.Load() }
