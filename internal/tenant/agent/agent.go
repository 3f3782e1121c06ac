// Package agent manages the agents of organizations and their Ed25519 keys: the right to sign events, and the state
// of each key. It hides how names are claimed and how keys are cached; callers ask for a key by agent and key ID.
//
// Invariants:
//
//   - An agent ID belongs permanently to one organization of the service. A public key and a key ID are used only
//     once in an organization.
//   - A public key is registered with a proof of its private key, or generated here. A generated private key is shown
//     once and not stored, and the custody of the key records this.
//   - A key is active, then possibly retired, then possibly revoked. It never becomes active again.
//   - Each change is committed in the organization's ledger in one append with the statement about it. Only the first
//     records of a new organization have no statement.
//   - A name that is unique in the whole service is first claimed in the service's own partition. A claim alone is
//     never visible as an agent or key.
//   - The keys of an organization's bridge agent are generated here and sign here. None can be registered. They are
//     stored sealed in the organization's partition.
//   - A deactivated agent cannot sign new events. Its keys remain unchanged.
//   - The agents of an organization and the keys of an agent are limited, also for concurrent calls. Existing ones
//     beyond a limit remain.
//   - Nothing of one organization is visible under another's handle.
package agent

import (
	"errors"
	"time"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/storage"
)

// Options configure New. Records and Events are required.
type Options struct {
	Records storage.RecordStore
	Events  *sysevent.Appender
	Keyring *seal.Keyring    // seals bridge keys; required only for the bridge
	Clock   func() time.Time // default: time.Now
	Cached  int              // decoded keys cached for SigningKey; default: 65,536
	Quota   *quota.Quota     // counts agents and limits changes; default: no limits
}

// keyShards reduces contention between events on several processors.
const keyShards = 16

// maxBridges bounds the cached bridge keys, and the cached agents that may use one.
const maxBridges = 1 << 14

// Agents manages the agents of all organizations. Its methods may be called concurrently.
type Agents struct {
	records storage.RecordStore
	events  *sysevent.Appender
	keyring *seal.Keyring
	clock   func() time.Time
	keys    *cache.Loading[signingKeyName, Key] // of a config version each
	quota   *quota.Quota
	bridges *cache.Loading[bridgeName, bridgeEntry] // of one config version each
	owners  *cache.Loading[id.Agent, id.Tenant]
}

// New returns the agents of a store.
func New(o Options) *Agents {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Cached == 0 {
		o.Cached = 1 << 16
	}
	if o.Quota == nil {
		o.Quota = &quota.Quota{Records: o.Records, Clock: o.Clock}
	}
	return &Agents{
		quota: o.Quota, records: o.Records, events: o.Events, keyring: o.Keyring, clock: o.Clock,
		keys: cache.NewLoading(cache.LoadingOptions[signingKeyName, Key]{
			MaxAge: cache.Forever,
			Limit:  int64(o.Cached),
			Shards: keyShards,
			Hash:   hashKeyID(),
		}),
		bridges: cache.NewLoading(cache.LoadingOptions[bridgeName, bridgeEntry]{
			MaxAge: cache.Forever,
			Limit:  maxBridges,
			Clock:  o.Clock,
		}),
		owners: cache.NewLoading(cache.LoadingOptions[id.Agent, id.Tenant]{
			MaxAge: cache.Forever,
			Limit:  int64(o.Cached),
			Clock:  o.Clock,
		}),
	}
}

// Agent is one agent of an organization.
type Agent struct {
	ID          id.Agent
	DisplayName string // may be ""
	CreatedAt   id.Instant
	CreatedBy   string // account, or sysevent.Operator
	Bridge      bool   // the workflow bridge may act for it
	Inactive    bool   // deactivated: its events, evaluations and runs are rejected, but its keys remain
}

// Status is the state of a key.
type Status string

const (
	Active  Status = "active"  // signs new events
	Retired Status = "retired" // signs no new events; older signatures remain valid
	Revoked Status = "revoked" // like Retired, and possibly compromised from an index on
)

// Key is one key of an agent.
//
// The log index of a revocation is the index of its own event. It is not needed to determine which events are
// compromised, because the key has no later events.
type Key struct {
	Agent           id.Agent
	ID              id.Key
	Public          edkey.Public
	Multikey        string // did.Multikey of Public, encoded once
	Custody         event.Custody
	Status          Status
	RegisteredAt    id.Instant
	RegisteredBy    string     // principal that registered it; "" for keys of older programs
	EndedAt         id.Instant // when it stopped being active; 0 if it is active
	CompromisedFrom *id.Index  // first index that is not trusted, if revoked; may be nil
	Reason          string     // of the revocation; may be ""
	AgentInactive   bool       // Agent.Inactive; set only by SigningKey
}

// ErrInactive returns the error for actions of a deactivated agent.
func ErrInactive() error {
	return &fault.Error{Kind: fault.Invalid, Code: "agent_inactive", Message: "The agent is switched off"}
}

// errNotFound returns the error for everything that does not exist for this caller.
func errNotFound() error { return fault.New(fault.NotFound, "Not found") }

// errUnreadable wraps an error of the store: the state of the keys is unknown.
func errUnreadable(step string, err error) error {
	return records.Unreadable("Agents and keys can't be read", step, err)
}

// isAbsent reports whether a read established that there is no record.
func isAbsent(err error) bool { return errors.Is(err, storage.ErrNotFound) }

func (a *Agents) currentTime() id.Instant { return id.InstantOf(a.clock()) }
