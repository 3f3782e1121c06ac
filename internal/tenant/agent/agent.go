// Package agent keeps the agents of organizations and their Ed25519 keys: the right to
// sign events, and the state of each key.
//
// Invariants:
//
//   - An agent id belongs to one organization of the service, for ever. A public
//     key and a key id are used once in an organization, for ever.
//   - A public key is registered by a proof of its private key, or made here: then
//     its private half is shown once, is not kept, and its custody says so.
//   - A key is active, then maybe retired, then maybe revoked; no way leads back.
//   - Each change lands in the organization's ledger in one append with the
//     statement about it. Only the first records of a new organization have none.
//   - A name that is unique in the whole service is claimed in the service's own
//     partition first. A claim alone is never shown as the thing it is for.
//   - The keys of an organization's bridge agent are made here and signed with here;
//     none can be registered. They lie sealed in the organization's partition.
//   - An agent that is switched off signs nothing new. Its keys stay as they are.
//   - The agents of an organization and the keys of an agent have bounds, which hold
//     for concurrent calls too. Older ones beyond a bound stay.
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

// Options configure New. Records and Notary are required.
type Options struct {
	Records storage.RecordStore
	Events  *sysevent.Appender
	Keyring *seal.Keyring    // seals bridge keys; only FoundBridge and Bridge need it
	Clock   func() time.Time // default: time.Now
	Cached  int              // keys kept decoded for SigningKey; default 65,536
	Quota   *quota.Quota     // counts agents and paces changes; default: one without bounds
}

// keyShards keeps events on several processors out of each other's way.
const keyShards = 16

// maxBridges is how many bridge keys, and agents that may use one, are remembered.
const maxBridges = 1 << 14

// Agents is the agents of all organizations. Its methods may be called
// concurrently.
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
	DisplayName string // "" for none
	CreatedAt   id.Instant
	CreatedBy   string // account, or sysevent.Operator
	Bridge      bool   // the workflow bridge may act for it
	Inactive    bool   // switched off: its events, questions and runs are refused, and its keys stay
}

// Status is the state of a key.
type Status string

const (
	Active  Status = "active"  // signs new events
	Retired Status = "retired" // signs none; its older signatures stay good
	Revoked Status = "revoked" // as retired, and maybe compromised from an index on
)

// Key is one key of an agent.
//
// The index at which a revocation lies is that of its own ledger event. It is
// not needed to tell which events are compromised: a key has none above it.
type Key struct {
	Agent           id.Agent
	ID              id.Key
	Public          edkey.Public
	Multikey        string // did.Multikey of Public, encoded once
	Custody         event.Custody
	Status          Status
	RegisteredAt    id.Instant
	RegisteredBy    string     // principal that registered it, "" for keys of before that was kept
	EndedAt         id.Instant // when it stopped being active; 0 for an active one
	CompromisedFrom *id.Index  // first index not to be trusted, of a revoked one; nil: none
	Reason          string     // of the revocation, may be empty
	AgentInactive   bool       // Agent.Inactive; only SigningKey tells it
}

// ErrInactive refuses work of an agent that is switched off.
func ErrInactive() error {
	return &fault.Error{Kind: fault.Invalid, Code: "agent_inactive", Message: "The agent is switched off"}
}

// errNotFound answers for every thing that does not exist for this caller.
func errNotFound() error { return fault.New(fault.NotFound, "Not found") }

// errUnreadable wraps any error of the store: nothing can be said
// about keys that can't be read.
func errUnreadable(step string, err error) error {
	return records.Unreadable("Agents and keys can't be read", step, err)
}

// isAbsent reports whether a read found positively nothing.
func isAbsent(err error) bool { return errors.Is(err, storage.ErrNotFound) }

func (a *Agents) currentTime() id.Instant { return id.InstantOf(a.clock()) }
