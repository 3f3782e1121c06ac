// Package follow does work for each stored event of an organization, in their order, behind a stored
// position. Its users send events away, make deliveries for them, or index them.
//
// There are two kinds of followers. Named ones are begun by people (Begin). With Options.All each ledger
// has one follower of the empty name, which needs no Begin.
//
// Invariants:
//
//   - A position moves only after the work for the events before it is done, and with the records
//     that the work writes. So a crash repeats work and skips none.
//   - A position that a person moved meanwhile wins. The work that was under way then writes nothing.
//   - As long as a named follower has a position there is a due entry (package schedule) for it, not later
//     than Position.NextAt. The entry is for restarts and retries. With All there are no entries: a start
//     looks at each ledger, and a failed try comes again after a pause.
//   - A ledger that moves is looked at within a second.
//   - A successor of a frozen ledger is followed from its first event. A named follower goes there after
//     the last provable event of the predecessor.
//   - Memory is bounded: of Options.Places, each with one batch, an organization has at most 4.
//     Followers whose last try failed have at most half of the places, so they delay no others.
//   - Followers that wait for a place get it in the order in which they came. One with more to do comes to
//     the end after each turn.
//   - Of processes that share a store each follows the organizations that it owns. A look ends before the
//     next batch when the organization goes to another process. The positions are safe without that, because a
//     position moves only from where it was read.
//   - A ledger that is being imported, or that goes on in another store, is not followed.
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

// Ledgers reads ledgers and tells which moved (package log).
type Ledgers interface {
	State(ctx context.Context, t id.Tenant) (*log.State, error)
	Predecessor(ctx context.Context, s *log.State) (*log.State, error)
	Events(ctx context.Context, s *log.State, begin, end id.Index, parts storage.Fields) iter.Seq2[storage.Event, error]
	Moves() *syncs.Inbox[id.Tenant]
	Relisted() *syncs.Inbox[id.Tenant]
}

// Work does the work for a batch. With an error nothing is written, and the batch comes again.
type Work func(ctx context.Context, b Batch) (Result, error)

// Options configure New. Those without a default are required.
type Options struct {
	Records   storage.RecordStore // may be a Share
	Ledgers   Ledgers
	Positions storage.Kind // of the records with positions, by the follower's name
	Work      Work

	Due       storage.Kind // of the due entries; only without All
	MaxEvents int          // of a batch; only without All
	MaxBytes  int          // of a batch: one more event may go beyond

	// All makes each of these ledgers have a follower. Its work gets batches without events and reads
	// the events behind the position by itself. Default: none.
	All   storage.SurveyStore
	Least id.Index // with All: how many events behind the position are worth a look

	Places int              // looks at once; default 32
	Turn   int              // batches in one look; default 16
	Clock  func() time.Time // default: time.Now
}

// Share is a record store that several processes share. Its methods are asked often, and concurrently.
type Share interface {
	// Owned reports whether the process follows an organization now.
	Owned(t id.Tenant) bool
	// Gains returns a number that rises after organizations came to the process.
	Gains() uint64
}

// allOwned is the share of a process that is alone.
type allOwned struct{}

func (allOwned) Owned(id.Tenant) bool { return true }
func (allOwned) Gains() uint64        { return 0 }

// Cursor names the next event of one log.
type Cursor struct {
	Origin id.Origin `json:"origin"`
	Next   id.Index  `json:"next"`
}

// Position is how far a follower has come.
type Position struct {
	Cursor
	NextAt       id.Instant `json:"next_at"`                // of the next look, at the latest
	Tries        int        `json:"tries,omitzero"`         // failures in a row
	FailingSince id.Instant `json:"failing_since,omitzero"` // of the first failure
	Note         string     `json:"note,omitzero"`          // what the work keeps with the position
}

// Batch is the events behind a position.
type Batch struct {
	Tenant   id.Tenant
	Name     string // of the follower
	Position Position
	State    *log.State      // of the ledger that the organization has now
	Events   []storage.Event // with record and envelope; none when there is no newer one, and with All
	After    Cursor          // behind the last of Events
	More     bool            // there are more events behind After
}

// Result is the result of the work for a batch.
type Result struct {
	Next    Cursor           // Batch.After when all is done; any place before it when less is
	Changes []storage.Change // of the organization's partition, written with the position
	Note    string           // becomes Position.Note
	More    bool             // there is more to do at once, also when Next is Batch.After
	Failed  bool             // the work comes again after a pause that grows
	Pause   time.Duration    // the shortest pause before the next look; 0: none
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
	queue   queue                             // to be looked at
	later   map[unit]id.Instant               // with All: to be looked at again after a failure
	failing map[unit]struct{}

	begin           sync.Once
	share           Share
	gains           uint64 // of share, when the ledgers were listed for the last time
	listing         atomic.Bool
	moved, relisted *syncs.Inbox[id.Tenant]
	ahead           *cache.Map[unit, id.Index] // with All: the size at which the next look is worth it
}

// maxAhead is of how many ledgers it is in memory when the next look is worth it.
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
