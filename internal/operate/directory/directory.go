// Package directory keeps one log of all logs: an ordinary organization of the
// service whose own events list the newest trees that the others have shown, so
// that witnesses and monitors need to follow one log to see all.
//
// Invariants:
//
//   - Only what the log itself shows as durable is listed: size, root and log key of
//     one published state.
//   - The listed size of a log never falls, and what was listed is what is on record:
//     event and record land in one append.
//   - However fast logs grow, at most one append is made in an interval. A log that
//     moved a thousand times in it is listed once.
//   - A tree is listed only if it extends the one that was listed before. A log that
//     shows another one is frozen.
//   - The directory does not list itself.
//
// Several processes may keep one directory: who comes second finds the listing done.
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
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Ledgers is what the directory needs of package log.
type Ledgers interface {
	State(ctx context.Context, t id.Tenant) (*log.State, error)
	Root(ctx context.Context, s *log.State, size id.Index) (id.Hash, error)
	Moves() *log.Moves
	Freeze(ctx context.Context, t id.Tenant, reason string) error
}

// Store is what the directory needs of an engine.
type Store interface {
	storage.RecordStore
	Head(ctx context.Context, t id.Tenant) (storage.Head, error)
	Tenants(ctx context.Context) iter.Seq2[id.Tenant, error]
}

// Notary states things in the directory's ledger (package notary).
type Notary interface {
	State(ctx context.Context, t id.Tenant, principal string, prepare func(context.Context, *log.State) (sysevent.Act, error)) ([]log.Receipt, error)
	EventID(ctx context.Context, s *log.State, statement sysevent.Statement) (id.Event, error)
}

// Options configure New. Ledgers, Store, Notary and Tenant are required.
type Options struct {
	Ledgers Ledgers
	Store   Store
	Notary  Notary
	Tenant  id.Tenant // of the organization that is the directory

	Interval time.Duration         // between two appends, at least; default 10 s
	Logger   *slog.Logger          // default: discards
	Metrics  prometheus.Registerer // default: none
}

// Directory is the directory of a service. Find may be called concurrently with
// all else; Run and Publish are one caller's.
type Directory struct {
	Options
	moves   *log.Moves
	pending map[id.Tenant]struct{}
	metrics *metrics
}

// New returns a directory that knows of every log that moves from now on. Publish
// lists the others after CatchUp.
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
	return &Directory{Options: o, moves: o.Ledgers.Moves(), pending: map[id.Tenant]struct{}{}, metrics: newMetrics(o.Metrics)}
}

// kindListed is the record, in the directory's partition, of what was last listed
// of a log, under the id of its organization, for a successor with its number.
const kindListed storage.Kind = "directory_listed"

// OfLog reports whether records of a kind are about one log: they don't go over to
// the one that succeeds it.
func OfLog(kind storage.Kind) bool { return kind == kindListed }

// listedName is the key of the record about the log of an origin.
func listedName(origin id.Origin) string {
	organization, err := origin.Organization()
	if err != nil {
		return string(origin)
	}
	return origin.Below(organization)
}

// Entry is the newest listing of a log.
type Entry struct {
	Event id.Event `json:"event"` // of the directory's log
	Size  id.Index `json:"size"`
	Root  id.Hash  `json:"root"`
}

// Find returns the newest listing of a log; fault.NotFound when there is none yet.
func (d *Directory) Find(ctx context.Context, origin id.Origin) (Entry, error) {
	e, _, err := d.find(ctx, origin)
	return e, err
}

// Listed returns the event that last listed a log, and the size listed;
// fault.NotFound when there is none yet.
func (d *Directory) Listed(ctx context.Context, origin id.Origin) (id.Event, id.Index, error) {
	e, _, err := d.find(ctx, origin)
	return e.Event, e.Size, err
}

func (d *Directory) find(ctx context.Context, origin id.Origin) (e Entry, version uint64, err error) {
	r, err := d.Store.Get(ctx, d.Tenant, kindListed, listedName(origin))
	if errors.Is(err, storage.ErrNotFound) {
		return Entry{}, 0, fault.New(fault.NotFound, "Not found")
	}
	if err == nil {
		err = json.Unmarshal(r.Value, &e)
	}
	if err != nil {
		return Entry{}, 0, &fault.Error{Kind: fault.Unavailable, Code: "unavailable", Message: "The directory can't be read",
			Err: fmt.Errorf("read listing: %w", err)}
	}
	return e, r.Version, nil
}
