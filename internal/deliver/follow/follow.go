// Package follow processes each stored event of an organization in order, at a stored position. Its users export
// events, create webhook notices, or index events. It hides the queue of followers, retries, and the change to a
// successor log.
//
// There are two kinds of followers. Named followers are started by users (Begin). With Options.All, each ledger has one
// follower with an empty name, which needs no Begin.
//
// Invariants:
//
//   - A position moves only after the events before it were processed, in the write that contains the results. So a
//     crash repeats work and never skips any.
//   - If a user moves the position, the work in flight writes nothing.
//   - While a named follower has a position, it has a due entry (package schedule) whose time is not later than
//     Position.NextAt. The entry is for restarts and retries. With All there are no entries: a start looks at each
//     ledger, and a failed attempt is repeated after a pause.
//   - A ledger that changes is looked at within a second.
//   - A successor of a frozen ledger is followed from its first event. A named follower continues there after the last
//     provable event of the predecessor.
//   - Memory is bounded: at most Options.Places looks run at a time, each with one batch, and at most 4 of one
//     organization. Followers whose last attempt failed use at most half of the slots, so they cannot delay the others.
//   - Waiting followers get slots in the order in which they came. A follower with more work goes to the end after each
//     turn.
//   - Each process that shares a store follows the organizations that it owns. A look ends before the next batch if the
//     organization moves to another process. The positions do not depend on that, because a position moves only from
//     where it was read.
//   - A ledger that is being imported, or that continues in another store, is not followed.
package follow

import (
	"cmp"
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Ledgers is the part of package log that followers use.
type Ledgers interface {
	State(ctx context.Context, t id.Tenant) (*log.State, error)
	Predecessor(ctx context.Context, s *log.State) (*log.State, error)
	Events(ctx context.Context, s *log.State, begin, end id.Index, parts storage.Fields) iter.Seq2[storage.Event, error]
	Moves() *syncs.Inbox[id.Tenant]
	Relisted() *syncs.Inbox[id.Tenant]
}

// Work processes a batch. If it returns an error, nothing is written, and the batch is repeated.
type Work func(ctx context.Context, b Batch) (Result, error)

// Options configure New. Those without a default are required.
type Options struct {
	Records   storage.RecordStore // may be a Share
	Ledgers   Ledgers
	Positions storage.Kind // of the records with positions, by the follower's name
	Work      Work

	Due       storage.Kind // of the due entries; only without All
	MaxEvents int          // of a batch; only without All
	MaxBytes  int          // of a batch, which the last event may exceed

	// All contains the ledgers that have a follower each. Work gets batches without events then, and reads the events
	// after the position itself. Default: none.
	All   storage.SurveyStore
	Least id.Index // with All: number of new events that are worth a look

	Places int              // concurrent looks; default: 32
	Turn   int              // batches in one look; default: 16
	Clock  func() time.Time // default: time.Now
}

// Share is a record store that several processes share. Its methods are called often, and concurrently.
type Share interface {
	// Owned reports whether this process owns an organization now.
	Owned(t id.Tenant) bool
	// Gains returns a number that increases after the process has gained organizations.
	Gains() uint64
}

// allOwned is the Share of a process that owns all organizations.
type allOwned struct{}

func (allOwned) Owned(id.Tenant) bool { return true }
func (allOwned) Gains() uint64        { return 0 }

// Cursor identifies the next event of a log.
type Cursor struct {
	Origin id.Origin `json:"origin"`
	Next   id.Index  `json:"next"`
}

// Position is the progress of a follower.
type Position struct {
	Cursor
	NextAt       id.Instant `json:"next_at"`                // time of the next look; it may be earlier
	Tries        int        `json:"tries,omitzero"`         // failures in a row
	FailingSince id.Instant `json:"failing_since,omitzero"` // of the first failure
	Note         string     `json:"note,omitzero"`          // stored by Work
}

// Batch is the events after a position.
type Batch struct {
	Tenant   id.Tenant
	Name     string // of the follower
	Position Position
	State    *log.State      // of the organization's current ledger
	Events   []storage.Event // with record and envelope; none with All
	After    Cursor          // after the last of Events
	More     bool            // there are events after After
}

// Result is the result of processing a batch.
type Result struct {
	Next    Cursor           // Batch.After, or a cursor before it if not all events were processed
	Changes []storage.Change // of the organization's partition, written with the position
	Note    string           // becomes Position.Note
	More    bool             // there is more work now, even if Next is Batch.After
	Failed  bool             // the work is repeated after a growing pause
	Pause   time.Duration    // minimum pause before the next look
	End     bool             // the position is deleted
}

// Follower is the followers of one kind. Its methods may be called concurrently.
type Follower struct {
	Options
	positions records.Store[Position]
	due       schedule.Index
	slots     *schedule.Slots

	mu      sync.Mutex
	known   map[id.Tenant]map[string]struct{} // named followers that have a position
	queue   queue                             // waits for a look
	later   map[unit]id.Instant               // with All: time of the next look after a failure
	failing map[unit]struct{}

	begin           sync.Once
	share           Share
	gains           uint64 // of share, when the ledgers were last listed
	listing         atomic.Bool
	moved, relisted *syncs.Inbox[id.Tenant]
	ahead           *cache.Map[unit, id.Index] // with All: the size at which the next look is worthwhile
}

// maxAhead bounds the ledgers in Follower.ahead.
const maxAhead = 1 << 16

// unit is one follower of one organization.
type unit struct {
	tenant id.Tenant
	name   string
}

func (u unit) job() schedule.Job { return schedule.Job{Tenant: u.tenant, Object: u.name} }

// New returns the followers of a kind.
func New(o Options) *Follower {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Places, o.Turn = cmp.Or(o.Places, 32), cmp.Or(o.Turn, 16)
	share, shared := o.Records.(Share)
	if !shared {
		share = allOwned{}
	}
	f := &Follower{
		Options: o, share: share,
		positions: records.New[Position](o.Records, o.Positions, "Positions can't be read"),
		due:       schedule.Index{Records: o.Records, Kind: o.Due},
		known:     make(map[id.Tenant]map[string]struct{}), later: make(map[unit]id.Instant),
		failing: make(map[unit]struct{}),
		queue:   queue{waiting: make(map[unit]*waiter)},
		ahead:   cache.NewMap(cache.MapOptions[unit, id.Index]{Limit: maxAhead}),
	}
	f.slots = schedule.NewSlots(f.checkSlots)
	return f
}

func (f *Follower) currentTime() id.Instant { return id.InstantOf(f.Clock()) }
