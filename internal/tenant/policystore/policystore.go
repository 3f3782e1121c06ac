// Package policystore stores the versions of an organization's policies, compiles the active one and evaluates it
// with the counters of the ledger. It hides how versions are stored and cached, and how limits are decided by the
// sequencer.
//
// Invariants:
//
//   - A version is first a draft, then alternately active and archived. It never becomes a draft again. Only drafts
//     can be changed or deleted; the document of a version that was ever active is permanent.
//   - Version numbers of a policy increase. At most its latest version is a draft.
//   - At most one version of all policies of an organization is active. The change to another one, or to none, is a
//     single append with the statements about it.
//   - With the two-person rule, a version must be activated by another account than its last editor, and no version
//     can be deactivated.
//   - The active policy has passed its own tests, and is compiled once for each digest, however often other settings
//     change.
//   - Active returns nil only if the store confirms that no policy is active. A policy that can't be read, or that is
//     not the activated one, is fault.Unavailable.
//   - The number of policies of an organization and of versions of a policy is limited by the plan. Existing ones
//     beyond a limit remain.
//   - Nothing of one organization is visible under another's handle.
//   - An event is decided with the values of the counters at its position in the ledger: the sequencer decides, and
//     the append of the event also writes the amounts that it adds.
//   - The record states the value of each counter before the event and the added amount, so the decision follows from
//     policy, envelope and record.
//   - DecideNow only reads counters. It changes and reserves nothing.
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
	Settings   Settings             // default: no two-person rule
	Voters     Voters               // default: any quorum can be reached
	Clock      func() time.Time     // default: time.Now
	Processors *admission.FairQueue // shared with other requests of the server; default: a new one
	Quota      *quota.Quota         // counts policies and limits changes; default: no limits
	CacheBytes int                  // memory for compiled policies, estimated; default: 64 MiB
}

// Policies manages the policies of all organizations. Its methods may be called concurrently.
type Policies struct {
	records    storage.RecordStore
	stores     stores
	events     *sysevent.Appender
	settings   Settings // nil means no two-person rule
	voters     Voters   // nil means that any quorum can be reached
	clock      func() time.Time
	quota      *quota.Quota
	processors *admission.FairQueue                        // acquired to compile documents
	lanes      syncs.KeyLocks[id.Tenant]                   // serializes the drafts of an organization
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

// State is the state of a version of a policy.
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
	Document    []byte     // see policy.Policy.Document; must not be modified
	WrittenAt   id.Instant // last change of the draft
	WrittenBy   string     // account of the last change
	ActivatedAt id.Instant // 0 for a draft
	ArchivedAt  id.Instant // 0 unless archived
}

// Listed is a policy in a list.
type Listed struct {
	PolicyID  string
	Name      string // of the latest version
	Version   uint64 // latest version
	State     State  // of the latest version
	Active    uint64 // active version; 0 if there is none
	UpdatedAt id.Instant
	UpdatedBy string // principal of that change; "" if an older program did not store it
}

func errNotFound() error { return fault.New(fault.NotFound, "Not found") }

// unreadableMessage is the message for clients if policies can't be read.
const unreadableMessage = "Policies can't be read"

// errUnreadable wraps an error of the store.
func errUnreadable(step string, err error) error {
	return records.Unreadable(unreadableMessage, step, err)
}

func (b *Policies) currentTime() id.Instant { return id.InstantOf(b.clock()) }
