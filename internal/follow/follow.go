// Package follow does work for each stored event of an organization, in their order, behind a stored
// position. Its users send events away or make deliveries for them.
//
// Invariants:
//
//   - A position moves only after the work for the events before it is done, and with the records
//     that the work writes. So a crash repeats work and skips none.
//   - A position that a person moved meanwhile wins. The work that was under way then writes nothing.
//   - As long as a follower has a position there is a due entry (package schedule) for it, not later
//     than Position.NextAt. A ledger that moves is looked at within a second. The entry is for
//     restarts and retries.
//   - A successor of a frozen ledger is followed from its first event, after the last provable event
//     of the predecessor.
//   - Memory is bounded: of 32 places, each with one batch, an organization has at most 4.
//     Followers whose last try failed have at most half of the places, so they delay no others.
//   - A ledger that is being imported, or that goes on in another store, is not followed.
package follow

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/schedule"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Ledgers reads ledgers and tells which moved (package log).
type Ledgers interface {
	State(ctx context.Context, t id.Tenant) (*log.State, error)
	Predecessor(ctx context.Context, s *log.State) (*log.State, error)
	Events(ctx context.Context, s *log.State, begin, end id.Index, parts storage.Fields) iter.Seq2[storage.Event, error]
	Moves() *log.Moves
	Relisted() *log.Moves
}

// Work does the work for a batch. With an error nothing is written, and the batch comes again.
type Work func(ctx context.Context, b Batch) (Result, error)

// Options configure New. All but Clock are required.
type Options struct {
	Records   storage.RecordStore
	Ledgers   Ledgers
	Positions storage.Kind // of the records with positions, by the follower's name
	Due       storage.Kind // of the due entries
	Work      Work
	MaxEvents int // of a batch
	MaxBytes  int // of a batch: one more event may go beyond

	Clock func() time.Time // default: time.Now
}

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
}

// Batch is the events behind a position.
type Batch struct {
	Tenant   id.Tenant
	Name     string // of the follower
	Position Position
	State    *log.State      // of the ledger that the organization has now
	Events   []storage.Event // with record and envelope; none when there is no newer one
	After    Cursor          // behind the last of Events
	More     bool            // there are more events behind After
}

// Result is the result of the work for a batch.
type Result struct {
	Next    Cursor           // Batch.After when all is done; any place before it when less is
	Changes []storage.Change // of the organization's partition, written with the position
	Failed  bool             // the work comes again after a pause that grows
	Pause   time.Duration    // the shortest pause before the next look; 0: none
	End     bool             // the position is deleted
}

// Follower is the followers of one kind. Its methods may be called concurrently.
type Follower struct {
	Options
	positions records.Store[Position]
	due       schedule.Index

	mu      sync.Mutex
	known   map[id.Tenant]map[string]struct{} // followers that have a position
	pending map[unit]bool                     // to be looked at; true: also in a pause after a failure
	running map[unit]struct{}
	failing map[unit]struct{}
	left    bool // work waits for a place
	flown   sync.WaitGroup
	room    chan struct{} // holds one when a place became free

	begin           sync.Once
	moved, relisted *log.Moves
}

// unit is one follower of one organization.
type unit struct {
	tenant id.Tenant
	name   string
}

// New returns the followers of a kind.
func New(o Options) *Follower {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Follower{
		Options:   o,
		positions: records.New[Position](o.Records, o.Positions, "Positions can't be read"),
		due:       schedule.Index{Records: o.Records, Kind: o.Due},
		known:     make(map[id.Tenant]map[string]struct{}), pending: make(map[unit]bool),
		running: make(map[unit]struct{}), failing: make(map[unit]struct{}), room: make(chan struct{}, 1),
	}
}

func (f *Follower) currentTime() id.Instant { return id.InstantOf(f.Clock()) }
