// Package policystore keeps the versions of an organization's policies, compiles the
// active one and evaluates it with the counters of the ledger.
//
// Invariants:
//
//   - A version is a draft, then active and archived in turns; no way leads back to a draft.
//     Only drafts change or go away; the document of a version that was ever active stays.
//   - Versions of one policy rise. At most its newest version is a draft.
//   - At most one version of all an organization's policies is active. The change
//     to another one, or to none, is a single append with the statements that it is.
//   - Where the organization wants two people, a version is activated by another account than
//     the one that changed it last, and none is deactivated.
//   - The active policy has passed its own tests, and is compiled once for each
//     digest, however often the configuration changes around it.
//   - Active answers "none" only when the store positively says so. A policy that
//     can't be read, or isn't the one that was activated, is fault.Unavailable.
//   - Policies of an organization and versions of a policy have the bounds of its plan.
//     Older ones beyond a bound stay.
//   - Nothing of one organization is visible under another's handle.
//   - An event is decided by the values of its counters at its place in the ledger: the
//     sequencer asks, and the append of the event also writes the amount that it adds.
//   - The record states the value of each counter before the event and the added amount, so
//     the decision follows from policy, envelope and record.
//   - DecideNow reads counters. It changes nothing and reserves nothing.
package policystore

import (
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/storage"
)

// Options configure New. Records and Events are required.
type Options struct {
	Records    storage.RecordStore
	Events     *sysevent.Appender
	Settings   Settings             // default: one person may do all
	Voters     Voters               // default: any quorum can be reached
	Clock      func() time.Time     // default: time.Now
	Processors *admission.FairQueue // shared with the other work of the server; default: its own
	Quota      *quota.Quota         // counts policies and paces changes; default: one without bounds
	CacheBytes int                  // compiled policies kept for Active, by their estimated weight; default 64 MiB
}

// Policies is the policies of all organizations. Its methods may be called
// concurrently.
type Policies struct {
	records    storage.RecordStore
	stores     stores
	events     *sysevent.Appender
	settings   Settings // nil: one person may do all
	voters     Voters   // nil: any quorum can be reached
	clock      func() time.Time
	quota      *quota.Quota
	processors *admission.FairQueue                        // of compiling documents
	lanes      syncs.KeyLocks[id.Tenant]                   // drafts of an organization are written one after the other
	active     *cache.Loading[id.Tenant, *policy.Compiled] // of a config version each
}

// New returns the policies of a store.
func New(o Options) *Policies {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Quota == nil {
		o.Quota = &quota.Quota{Records: o.Records, Clock: o.Clock}
	}
	if o.Processors == nil {
		o.Processors = admission.New(1).Processors
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 64 << 20
	}
	return &Policies{
		records:    o.Records,
		stores:     newStores(o.Records),
		events:     o.Events,
		settings:   o.Settings,
		voters:     o.Voters,
		clock:      o.Clock,
		quota:      o.Quota,
		processors: o.Processors,
		active:     newActiveCache(o.CacheBytes),
	}
}

// State is where a version of a policy stands.
type State string

const (
	Draft    State = "draft"
	Active   State = "active"
	Archived State = "archived" // it was active
)

// Version is one version of a policy.
type Version struct {
	PolicyID    string
	Version     uint64
	State       State
	Digest      id.Hash    // policy_digest
	Document    []byte     // as policy.Policy.Document writes it; not to be written to
	WrittenAt   id.Instant // last change as a draft
	WrittenBy   string     // and by whom
	ActivatedAt id.Instant // 0 for a draft
	ArchivedAt  id.Instant // 0 unless archived
}

// Listed is a policy in a list.
type Listed struct {
	PolicyID  string
	Name      string // of the newest version
	Version   uint64 // the newest
	State     State  // of the newest version
	Active    uint64 // the active version, 0 for none
	UpdatedAt id.Instant
	UpdatedBy string // the principal of that change; "" when a former service kept none
}

func errNotFound() error { return fault.New(fault.NotFound, "Not found") }

// unreadableMessage is the message for a client when policies can't be read.
const unreadableMessage = "Policies can't be read"

// errUnreadable wraps any error of the store.
func errUnreadable(step string, err error) error {
	return records.Unreadable(unreadableMessage, step, err)
}

func (b *Policies) currentTime() id.Instant { return id.InstantOf(b.clock()) }
