// Package erasure erases envelopes and payloads from an organization's store: when an owner requests it, and when
// they are older than the organization's retention. Callers request erasures (ask.go) and list them; the package finds
// the events, approvals, deliveries and archived objects that contain the texts (run.go, findapprovals.go) and removes
// the texts themselves (erase.go). Digests and proofs stay, so no key has to be destroyed.
//
// Invariants:
//
//   - Envelopes and the payloads of their approvals are erased in the same append as the events that state it and the
//     progress of the erasure. So a crash at any step repeats nothing and skips nothing.
//   - Nothing is erased while the organization has a legal hold. The hold is read under the config version that
//     guards the append, and changing it increments that version.
//   - An erasure affects only events that were in the log when it was requested.
//   - One append erases at most 4,096 indices. After one append of an organization, other organizations get their turn.
//   - At most 100 erasures of an organization wait.
//   - An erasure is done only when no archived object contains an envelope that it erased, and the index no value of one.
//   - Reasons are codes from a list. No event, error or log line contains a text that a person wrote or an erased
//     text. The name of a principal is deleted when its erasure ends.
//   - Nothing of one organization is visible under another's handle.
package erasure

import (
	"context"
	"iter"
	"time"

	"github.com/agentledger/agentledger/internal/tenant/quota"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/mail"
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

// MaxOpen is how many erasures of an organization may wait at the same time.
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
	// ErasuresWaiting reports whether the index may still contain values of envelopes that were erased before the call, and has them
	// removed.
	ErasuresWaiting(ctx context.Context, t id.Tenant) (bool, error)
}

// ApprovalList reads approvals (package approval).
type ApprovalList interface {
	List(ctx context.Context, t id.Tenant, f approval.Filter, before approval.ID, limit int) (approval.Page, error)
	Find(ctx context.Context, t id.Tenant, name approval.ID) (approval.Approval, error)
}

// Options configure New. All fields except the last four are required.
type Options struct {
	Records    storage.RecordStore
	Events     *sysevent.Appender
	Eraser     *EnvelopeEraser
	Ledgers    Ledgers
	Index      Index
	Approvals  *approval.Approvals
	Lists      ApprovalList
	Deliveries *webhook.Sender
	Mails      *mail.Outbox
	Settings   *org.Orgs

	Archive Archive          // optional
	Pace    *quota.Quota     // optional
	Clock   func() time.Time // default: time.Now
	Held    func() error     // returns an error while Run must erase nothing; default: always nil
}

// Archive stores the texts of old events in objects, which are rewritten after an erasure.
type Archive interface {
	// ErasuresWaiting reports whether an object may still contain an envelope that was erased before the call.
	ErasuresWaiting(ctx context.Context, t id.Tenant) (bool, error)
}

// Erasures manages the erasures of all organizations. Its methods may be called concurrently.
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

// holdCode is the code of errors because of a legal hold.
const holdCode = "legal_hold"

func errHold() error {
	return &fault.Error{Kind: fault.Conflict, Code: holdCode,
		Message: "The organization has a legal hold: nothing is erased until an owner ends it"}
}

// checkHold returns an error if the organization has a legal hold.
func (e *Erasures) checkHold(ctx context.Context, s *log.State) error {
	keeping, err := e.Settings.Keeping(ctx, s)
	if err == nil && keeping.Hold {
		err = errHold()
	}
	return err
}
