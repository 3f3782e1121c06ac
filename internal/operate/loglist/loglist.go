// Package loglist keeps the list of the logs of a service in the form of C2SP
// tlog-list, so that witnesses follow new logs automatically.
//
// Invariants:
//
//   - A log is listed once, under its origin, with its newest key. For example, a log
//     whose key is being rotated has the newer key, because the older one ends.
//   - A log that shows no newer tree here, because it is frozen or was moved, is not
//     listed.
//   - The list has origins and keys. It has no slug, name or address of an
//     organization.
//   - The first list is made after all logs were found. So a new process never shows a
//     list with missing logs.
//   - The list is made again only after a log came, went, or got another key. That
//     takes at most a fiftieth of a processor. For example, 100,000 logs take 0.6 s, so
//     the next list is made half a minute later. Requests get the finished list.
//   - The same logs and settings give the same bytes in every process. Each node makes its own list, and hears of the
//     changes on other nodes.
package loglist

import (
	"context"
	"iter"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/log"
)

// Ledgers is the part of package log that the list uses.
type Ledgers interface {
	Listing(ctx context.Context, t id.Tenant) (log.Listing, bool, error)
	Relisted() *log.Moves
}

// Store is the part of a storage engine that the list uses.
type Store interface {
	Tenants(ctx context.Context) iter.Seq2[id.Tenant, error]
}

// Options configure New. Ledgers, Store, Contact and PerDay are required.
type Options struct {
	Ledgers Ledgers
	Store   Store
	Contact string // how people reach the operator: one line, not empty
	PerDay  int    // how often a log asks a witness in a day, 1 to 2^31 - 1

	Others *cluster.Inbox // logs that came, ended or got another key on other nodes; nil: there are none

	Interval time.Duration         // between two lists, at least; default 1 s
	Logger   *slog.Logger          // default: discards
	Metrics  prometheus.Registerer // default: none
}

// List is the list of a service. Current may be called concurrently with all else. Run
// MUST be called once only.
type List struct {
	Options
	relisted *log.Moves
	found    bool                 // all logs were found; false again when news of other nodes were missed
	changed  bool                 // keys are not those of the current list
	keys     map[id.Tenant]string // vkeys of the logs that are listed
	pending  map[id.Tenant]struct{}
	current  atomic.Pointer[Made]
	logs     prometheus.Gauge
}

// New returns a list that follows each log that comes, goes or gets another key from
// now on. Run finds the others.
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

// Current returns the newest list, nil before the first one was made.
func (l *List) Current() *Made { return l.current.Load() }
