// Package erasure takes envelopes and payloads away from an organization's store: when an owner asks, and
// when they are older than the organization keeps them.
//
// Invariants:
//
//   - Envelopes and the payloads of their approvals go in the append of the events that say so, with the
//     progress of the erasure. So a crash at any step repeats nothing and skips nothing.
//   - Nothing is erased while the organization has a legal hold. The hold is read under the config version
//     that guards the append, and switching it raises that version.
//   - An erasure is of the events that were there when it was asked for, and of no later one.
//   - One append takes at most 4,096 indices. An organization gets one append before others have theirs.
//   - At most 100 erasures of an organization wait.
//   - An erasure is done only when no archived object holds an envelope that it took away.
//   - Reasons are codes of a list. No text of a person and no erased text is in an event, an error or a log
//     line. The name of a principal is forgotten with the end of its erasure.
//   - Nothing of one organization is visible under another's handle.
package erasure

import (
	"context"
	"iter"
	"time"

	"github.com/agentledger/agentledger/internal/tenant/quota"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// MaxOpen is how many erasures of an organization may wait.
const MaxOpen = 100

// Ledgers reads ledgers (package log).
type Ledgers interface {
	State(ctx context.Context, t id.Tenant) (*log.State, error)
	Event(ctx context.Context, s *log.State, at id.Index, parts storage.Fields) (storage.Event, error)
	Events(ctx context.Context, s *log.State, begin, end id.Index, parts storage.Fields) iter.Seq2[storage.Event, error]
}

// Index finds the events of an organization (package index).
type Index interface {
	List(ctx context.Context, t id.Tenant, q index.Query) (index.Page, error)
	Find(ctx context.Context, t id.Tenant, name string) (index.Row, error)
}

// ApprovalList reads approvals (package approval).
type ApprovalList interface {
	List(ctx context.Context, t id.Tenant, f approval.Filter, before approval.ID, limit int) (approval.Page, error)
	Find(ctx context.Context, t id.Tenant, name approval.ID) (approval.Approval, error)
}

// Options configure New. All but the last three are required.
type Options struct {
	Records    storage.RecordStore
	Events     *sysevent.Appender
	Eraser     *EnvelopeEraser
	Ledgers    Ledgers
	Index      Index
	Approvals  *approval.Approvals
	Lists      ApprovalList
	Deliveries *webhook.Sender
	Settings   *org.Orgs

	Archive Archive          // default: none
	Pace    *quota.Quota     // default: none
	Clock   func() time.Time // default: time.Now
	Held    func() error     // returns an error while Run must erase nothing; default: always nil
}

// Archive holds texts of old events in objects, which are rewritten after an erasure.
type Archive interface {
	// ErasuresWaiting reports whether an object may still hold an envelope that was erased before the call.
	ErasuresWaiting(ctx context.Context, t id.Tenant) (bool, error)
}

// Erasures is the erasures of all organizations. Its methods may be called concurrently.
type Erasures struct {
	Options
	erasures   records.Store[record]
	tallies    records.Store[tallyRecord]
	retentions records.Store[retentionRecord]
	due        schedule.Index
}

// New returns the erasures of a store.
func New(o Options) *Erasures {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Held == nil {
		o.Held = func() error { return nil }
	}
	return &Erasures{Options: o,
		erasures:   records.New[record](o.Records, kindErasure, unreadableMessage),
		tallies:    records.New[tallyRecord](o.Records, kindTally, unreadableMessage),
		retentions: records.New[retentionRecord](o.Records, kindRetention, unreadableMessage),
		due:        schedule.Index{Records: o.Records, Kind: kindDue},
	}
}

func (e *Erasures) currentTime() id.Instant { return id.InstantOf(e.Clock()) }

// unreadableMessage is the message for clients when erasures can't be read.
const unreadableMessage = "Erasures can't be read"

func errUnreadable(step string, err error) error {
	return records.Unreadable(unreadableMessage, step, err)
}

func errNotFound() error { return fault.New(fault.NotFound, "Not found") }

// holdCode is the code of refusals by a legal hold.
const holdCode = "legal_hold"

func errHold() error {
	return &fault.Error{Kind: fault.Conflict, Code: holdCode,
		Message: "The organization has a legal hold: nothing is erased until an owner ends it"}
}

// checkHold returns the refusal of an organization with a legal hold.
func (e *Erasures) checkHold(ctx context.Context, s *log.State) error {
	keeping, err := e.Settings.Keeping(ctx, s)
	if err == nil && keeping.Hold {
		err = errHold()
	}
	return err
}
