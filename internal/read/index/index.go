// Package index finds the events of a ledger by agent, tool, kind, decision, trace, principal,
// signer, time and hash. It follows each ledger (package follow) from a stored position. The lists and searches of the
// console and the API use it; it hides from them where postings are stored and how they are merged.
//
// It also joins events to acts (acts.go): the outcome of an act (done, refused and so on) is computed when it is read, from
// the status of the result, the state of the approval and the decision (act.go). Only these three are stored.
//
// A generation is one copy of the index of one ledger. It has postings (which events have a term, see postings.go) and
// columns (the values by which events are counted, see columns.go). The postings of the latest events are in few
// records, which are replaced when their block is complete, and later merged (merger). The position of a generation is
// in the same write as its postings. Events after the position are the tail: lists read them from the ledger and cache
// them. So lists reach the latest event unless the tail is longer than maxTail.
//
// Invariants:
//
//   - The index is derived: it can be dropped, and it is never exported. It holds no text of payloads except the values of the columns that
//     the organization names (values.go). Those go when an event is erased, and when a column is not named any more.
//   - A follower that is killed at any moment repeats nothing and skips nothing, because position and
//     postings are written together, under the version of the position that was read.
//   - Postings are hints: two terms may share a fingerprint. Each event of a list is read from the
//     ledger and compared with the filter.
//   - A list that encounters a damaged record fails, and has the index rebuilt.
//   - A list uses one generation. If that was replaced in the meantime, the list is computed again.
//   - The order of a list is the order of the ledger, and a cursor is a log index. So pages are stable
//     while events are added.
//   - The work of one call is bounded, except for counts, which end with their context.
package index

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/deliver/follow"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// The sizes of an index. They are part of its stored form.
const (
	chunkEvents = 1 << 13   // events indexed by one write, and rows of one column record
	blockEvents = blockSize // events of one posting
)

// maxTail bounds the tail that lists read from the ledger, in events.
const maxTail = 4 * chunkEvents

// Ledgers provides the followed ledgers. log.Ledgers implements it.
type Ledgers interface {
	follow.Ledgers
	Event(ctx context.Context, s *log.State, at id.Index, parts storage.Fields) (storage.Event, error)
	Locate(ctx context.Context, s *log.State, events []id.Event) ([]id.Index, error)
}

// Store stores the index in the partition of each organization. Events are read by indices below a published size.
type Store interface {
	storage.RecordStore
	storage.SurveyStore
	EventsAt(ctx context.Context, t id.Tenant, at []id.Index, parts storage.Fields) ([]storage.Event, error)
}

// Options configure New. Ledgers and Store are required.
type Options struct {
	Ledgers Ledgers
	Store   Store
	Clock   func() time.Time      // default: time.Now
	Metrics prometheus.Registerer // default: none

	// Columns returns the columns of the organization of a state: the current ones, or those of a later change. The first event at or after
	// Column.From that states a change of settings is the one that named the column. Default: none.
	Columns func(ctx context.Context, s *log.State) ([]Column, error)

	// InheritedToolKeys returns the verifier keys of tools with which the log of a state began: those of its predecessor. Default: none.
	InheritedToolKeys func(ctx context.Context, s *log.State) ([]string, error)

	// TailBytes bounds the cached tails; default: 64 MiB.
	TailBytes int64
}

// Index is the index of all ledgers of a store. Its methods may be called concurrently.
type Index struct {
	ledgers  Ledgers
	store    Store
	clock    func() time.Time
	follower *follow.Follower
	metrics  *metrics

	maxCounted    int // of trace.go; tests lower it
	maxActRecords int // of list.go; tests lower it
	merger        merger
	columns       func(ctx context.Context, s *log.State) ([]Column, error) // may be nil

	inheritedToolKeys func(ctx context.Context, s *log.State) ([]string, error) // may be nil

	tails     *cache.Map[id.Tenant, tail]
	extending syncs.KeyLocks[id.Tenant] // one reader extends a tail
	times     *cache.Map[timeKey, id.Instant]
	naming    *cache.Map[timeKey, id.Index] // the events that named columns, by Column.From of the settings
}

// New returns the index. It can be read immediately, and Run extends it.
func New(o Options) *Index {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	if o.TailBytes == 0 {
		o.TailBytes = 64 << 20
	}
	x := &Index{ledgers: o.Ledgers, store: o.Store, clock: o.Clock, maxCounted: maxCounted, maxActRecords: maxActRecords,
		columns: o.Columns, inheritedToolKeys: o.InheritedToolKeys,
		merger: merger{Store: o.Store, Bits: mergeBits},
		tails:  cache.NewMap(cache.MapOptions[id.Tenant, tail]{Limit: o.TailBytes, Weight: weighTail}),
		times:  cache.NewMap(cache.MapOptions[timeKey, id.Instant]{Limit: maxTimes}),
		naming: cache.NewMap(cache.MapOptions[timeKey, id.Index]{Limit: maxTimes}),
	}
	x.follower = x.newFollower()
	x.metrics = newMetrics(o.Metrics, x.follower)
	return x
}
