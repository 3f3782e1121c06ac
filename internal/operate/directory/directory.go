// Package directory maintains one log of all logs: an organization of the service whose events list the latest
// published trees of the other organizations. Witnesses and monitors can follow all logs by following this one.
// Callers run it and query listings; they need not know when and how a log is listed.
//
// Invariants:
//
//   - A listing contains only published and durable values: size, root and log key of one state.
//   - The listed size of a log never decreases. The event and the record of a listing are committed in one append.
//   - There is at most one append per interval. A log that grew a thousand times in an interval is listed once.
//   - A tree is listed only if it extends the tree that was listed before. A log with a different history is frozen.
//   - The directory does not list itself.
//
// Several processes may maintain one directory. The second one finds the listing done. Of several nodes, the owner of
// the directory's ledger maintains it (Options.Keeps). It reads the logs of other nodes as of their anchors. Each
// node compares its own logs with their listings, and freezes those that contradict.
package directory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Ledgers is the part of package log that the directory uses.
type Ledgers interface {
	State(ctx context.Context, t id.Tenant) (*log.State, error)
	// LastShown returns a ledger that another node owns, as of its anchor.
	LastShown(ctx context.Context, t id.Tenant) (*log.State, error)
	Root(ctx context.Context, s *log.State, size id.Index) (id.Hash, error)
	Moves() *syncs.Inbox[id.Tenant]
	Freeze(ctx context.Context, t id.Tenant, reason string) error
}

// Store is the part of a storage engine that the directory uses.
type Store interface {
	storage.RecordStore
	Head(ctx context.Context, t id.Tenant) (storage.Head, error)
	Tenants(ctx context.Context) iter.Seq2[id.Tenant, error]
}

// Options configure New. Ledgers, Store, Notary and Tenant are required.
type Options struct {
	Ledgers Ledgers
	Store   Store
	Events  *sysevent.Appender
	Tenant  id.Tenant // the directory's organization

	Keeps  func() bool             // reports whether this process maintains the directory now; nil: always
	Others *syncs.Inbox[id.Tenant] // logs that grew on other nodes; nil if there are none

	Interval time.Duration         // minimum time between two appends; default: 10 s
	Logger   *slog.Logger          // default: discards
	Metrics  prometheus.Registerer // default: not registered
}

// Directory is the directory of a service. Find and Listed may be called concurrently with everything else. Run,
// CatchUp and Publish must be called by one goroutine.
type Directory struct {
	Options
	moves    *syncs.Inbox[id.Tenant]
	caughtUp bool
	pending  map[id.Tenant]time.Time // logs to examine; logs of other nodes are examined again until that time
	metrics  *metrics
}

// New returns a directory that follows each log that moves from now on. CatchUp finds the logs that moved before.
func New(o Options) *Directory {
	if o.Interval <= 0 {
		o.Interval = 10 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	return &Directory{
		Options: o,
		moves:   o.Ledgers.Moves(),
		pending: map[id.Tenant]time.Time{},
		metrics: newMetrics(o.Metrics),
	}
}

// kindListed is the record of the last listing of a log. It is stored in the directory's partition under the ID of
// the organization, followed by the successor's number if there is one.
const kindListed storage.Kind = "directory_listed"

// OfLog reports whether records of a kind belong to one log. Such records are not copied to a successor.
func OfLog(kind storage.Kind) bool { return kind == kindListed }

// listedRecordKey returns the key of the record for the log with the given origin.
func listedRecordKey(origin id.Origin) string {
	organization, err := origin.Organization()
	if err != nil {
		return string(origin)
	}
	return origin.Below(organization)
}

// Entry is the last listing of a log.
type Entry struct {
	Event id.Event `json:"event"` // of the directory's log
	Size  id.Index `json:"size"`
	Root  id.Hash  `json:"root"`
}

// Find returns the last listing of a log. It returns fault.NotFound if the log was never listed.
func (d *Directory) Find(ctx context.Context, origin id.Origin) (Entry, error) {
	e, _, err := d.readListing(ctx, origin)
	return e, err
}

// Listed returns the event that last listed a log, and the listed size. It returns fault.NotFound if the log was
// never listed.
func (d *Directory) Listed(ctx context.Context, origin id.Origin) (id.Event, id.Index, error) {
	e, _, err := d.readListing(ctx, origin)
	return e.Event, e.Size, err
}

// ListedLog is a log with its last listed size.
type ListedLog struct {
	Path string // after /o/: the ID of the organization, followed by the log's number from its second log on
	Size id.Index
}

// List returns up to limit logs after a path, in the order of their paths. It starts with the first log if after is "".
func (d *Directory) List(ctx context.Context, after string, limit int) ([]ListedLog, error) {
	store := records.Store[Entry]{Records: d.Store, Kind: kindListed, Message: "The directory can't be read"}
	found, err := store.List(ctx, d.Tenant, records.After(after), limit)
	if err != nil {
		return nil, err
	}
	logs := make([]ListedLog, len(found))
	for i, one := range found {
		logs[i] = ListedLog{one.Key, one.Value.Size}
	}
	return logs, nil
}

func (d *Directory) readListing(ctx context.Context, origin id.Origin) (e Entry, version uint64, err error) {
	r, err := d.Store.Get(ctx, d.Tenant, kindListed, listedRecordKey(origin))
	if errors.Is(err, storage.ErrNotFound) {
		return Entry{}, 0, fault.New(fault.NotFound, "Not found")
	}
	if err == nil {
		err = json.Unmarshal(r.Value, &e)
	}
	if err != nil {
		return Entry{}, 0, &fault.Error{
			Kind:    fault.Unavailable,
			Code:    "unavailable",
			Message: "The directory can't be read",
			Err:     fmt.Errorf("read listing: %w", err),
		}
	}
	return e, r.Version, nil
}

// RecordChecks returns a function for each kind of record of this package that reports whether such a record can be
// decoded. An import calls it before it writes.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{
		kindListed: records.Check[Entry],
	}
}
