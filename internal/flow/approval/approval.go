// Package approval is the obligation workflow: an agent asks, people vote, the agent takes the
// permission once and does the action.
//
//	pending -> approved -> consumed
//	pending -> denied
//	pending, approved -> expired, cancelled (by the asking key), revoked (by people),
//	                     invalidated (the active policy does not ask for it any more)
//
// vote.go counts a vote, obstacles.go finds why a person may not cast one, and quorum.go decides which votes still count.
//
// Invariants:
//
//   - Every arrow is a ledger_approval event, in one append with the change.
//   - Time never approves: an approval is over when its time is, also before the event that says so
//     is written.
//   - An approval holds under another policy while that policy, asked again with the same input,
//     asks for the same approval or a weaker one by the same rule id. Else it is invalid at once,
//     also before the event that says so is written. Its own quorum and time stay.
//   - An approval is bound to one action (action_digest), one ingest key and the policy digest that
//     it was asked under. It
//     is consumed once, by the key that asked, with the proof of an active key of the agent, or by
//     a step of a keyless tool in the append of that step. The grant is signed and lives five
//     minutes.
//   - An event that needs approval asks once: every later question of the same event finds that approval,
//     in any state.
//   - A vote counts while its voter may vote. A person votes once, and not on an own request
//     unless the organization allows self-review.
//   - How a voter signs in is in the log as of the vote: a change that the voter did not prove is stated before the
//     vote, and an organization may refuse the votes of such a member for a time.
//   - An approval for which signed votes are required gets no approving vote without a signature by the voter's passkey over
//     its own action. Whether they are required is pinned when the approval is asked for. A denial needs no signature.
//   - Roles, keys and policy are those of the ledger state that guards the append, or are read in
//     the same preparation.
//   - A callback reports each change of state. Its delivery is written in the same append.
//   - The key that signs an organization's grants is made with the first grant, in the append that states it. It is stored
//     sealed, opened only to sign, and belongs to one log: the log that succeeds it gets another one.
//   - A principal is the sender's free text: it is compared with the names of people and never changed. The comparison
//     errs on the strict side, so a text that contains a name anywhere mentions the account. It works on an erased
//     principal too, whose text cannot be read back.
//   - An approval with a payload is found by the digest of its action, so that the erasure of an event takes the payloads
//     of its approvals with it. The entry is written in the append that asks and removed in the one that erases.
//   - A waiting caller costs no goroutine of this package, and an idle organization costs nothing.
//   - Nothing of one organization is visible under another's handle.
package approval

import (
	"context"
	"time"

	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/tenant/voterkey"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify/signedvote"
)

// Bounds of an organization's approvals.
const (
	MaxOpen = 1000 // pending or approved

	// MaxOpenByKey is the number of open approvals that one ingest key may have asked for: half of
	// all, so that no agent takes the room of the organization's others.
	MaxOpenByKey = MaxOpen / 2

	// MaxAsked is the number of approvals that may be asked for at once. As many more may be asked
	// for in each hour, because the events of approvals count in no plan.
	MaxAsked = 10_000
	askEvery = time.Hour / MaxAsked
)

// ID names an approval. Ids of one service rise with the time they were made.
type ID string

func newApprovalID(now id.Instant) ID { return ID(id.Rising("apr_", now)) }

// Status is where an approval stands.
type Status string

const (
	Pending     Status = "pending"
	Approved    Status = "approved"
	Consumed    Status = "consumed"
	Denied      Status = "denied"
	Expired     Status = "expired"
	Cancelled   Status = "cancelled"
	Revoked     Status = "revoked"
	Invalidated Status = "invalidated"
)

// Open reports whether something may still come of an approval.
func (s Status) Open() bool { return s == Pending || s == Approved }

// Valid reports whether s is one of the states.
func (s Status) Valid() bool {
	switch s {
	case Pending, Approved, Consumed, Denied, Expired, Cancelled, Revoked, Invalidated:
		return true
	}
	return false
}

// Vote is the ballot of one person.
type Vote struct {
	Account account.ID `json:"account"`
	Email   string     `json:"email"`
	Vote    string     `json:"vote"` // approve or deny
	Comment string     `json:"comment"`
	Code    string     `json:"reason_code,omitzero"`
	At      id.Instant `json:"at"`
	// Signature is by the voter's passkey; nil for a vote that is an unverified operator claim.
	Signature *VoteSignature `json:"signature,omitempty"`
}

// VoteSignature names the voter key that signed a vote. The signature itself is in the event.
type VoteSignature struct {
	CredentialID    signedvote.Bytes `json:"credential_id"`
	Thumbprint      string           `json:"thumbprint"`
	KeyRegisteredAt id.Instant       `json:"key_registered_at"`
}

// Remark is a person's comment on a decision. The agent gets it with the decision, without a name.
type Remark struct {
	Comment string `json:"comment,omitzero"`     // at most 1,024 characters, "" for none
	Code    string `json:"reason_code,omitzero"` // for programs, [a-z][a-z0-9_]{0,63}; "" for none
}

// Approval is one request for permission. A value that was handed out never changes.
type Approval struct {
	ID            ID
	Status        Status // as of the moment it was read
	Agent         id.Agent
	Tool          id.Tool
	Payload       jsontext.Value // canonical; nil when it is erased
	ActionDigest  id.Hash
	Trace         id.Trace // "" for none
	Principal     string   // for whom the agent acts, as it says; "" if none was sent or it was erased
	IngestKeyID   string   // the key that asked
	CallbackURL   string   // "" for none
	PolicyID      string
	PolicyVersion uint64
	PolicyDigest  id.Hash
	RuleID        string
	Reason        string // of the rule
	Quorum        int
	Signed        bool // approving votes have to be signed by a passkey
	Votes         []Vote
	Remark        Remark // of the vote that decided, or of the revocation; empty for all others
	CreatedAt     id.Instant
	ExpiresAt     id.Instant
	EndedAt       id.Instant // 0 while it is open
	ErasedAt      id.Instant // when the payload was taken away; 0: it is there

	keyMaker, agentMaker string // principals that made the ingest key and the agent
	principal            string // as sent, "" if erased
	hidden               Hidden
}

// mentions reports whether the agent acts for an account of this name.
func (a *Approval) mentions(name string) bool {
	return mentions(a.principal, name) || a.hidden.Mentions(name)
}

// Organizations knows settings and ingest keys (package org).
type Organizations interface {
	Settings(ctx context.Context, s *log.State) (*org.Settings, error)
	IngestKey(ctx context.Context, t id.Tenant, key string) (org.IngestKey, error)
}

// Members knows the roles of members, and so their right to vote, and the people themselves (package
// account); fault.NotFound for a stranger.
type Members interface {
	Membership(ctx context.Context, t id.Tenant, who account.ID) (account.Membership, error)
	ByID(ctx context.Context, who account.ID) (account.Account, error)
}

// Deliveries writes the deliveries of webhooks (package webhook).
type Deliveries interface {
	// CheckAddress reports whether an address could be told something: fault.Invalid.
	CheckAddress(address string) error
	// WriteDelivery returns the records that make deliveries happen.
	WriteDelivery(
		ctx context.Context, t id.Tenant, organization id.Organization, messages ...webhook.Message,
	) ([]storage.Change, error)
}

// Options configure New. All but SignIns, VoterKeys, Clock and Held are required.
type Options struct {
	Records       storage.RecordStore
	Events        *sysevent.Appender
	Ledgers       *log.Ledgers
	Policies      policystore.ActiveSource
	Agents        *agent.Agents
	Organizations Organizations
	Members       Members
	SignIns       *member.Members // default: no change of a sign-in is stated
	VoterKeys     *voterkey.Keys  // default: no vote is signed
	Webhooks      Deliveries
	Keyring       *seal.Keyring    // seals grant keys
	Clock         func() time.Time // default: time.Now
	Held          func() error     // returns an error while Run must not sweep; nil: never
}

// Approvals is the approvals of all organizations. Its methods may be called
// concurrently.
type Approvals struct {
	stores   stores
	events   *sysevent.Appender
	ledgers  *log.Ledgers
	policies policystore.ActiveSource
	agents   *agent.Agents
	orgs     Organizations
	members  Members
	signIns  *member.Members
	voters   *voterkey.Keys
	webhooks Deliveries
	clock    func() time.Time
	held     func() error

	due      schedule.Index
	hub      syncs.Hub[ID]
	doubts   doubts
	verdicts *cache.Map[verdictKey, bool]

	grantKeys grantKeys
}

// New returns the approvals of a store.
func New(o Options) *Approvals {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Approvals{
		stores: storesOf(o.Records), events: o.Events, ledgers: o.Ledgers, policies: o.Policies, agents: o.Agents,
		orgs: o.Organizations, members: o.Members, signIns: o.SignIns, voters: o.VoterKeys, webhooks: o.Webhooks, clock: o.Clock,
		held:     o.Held,
		due:      schedule.Index{Records: o.Records, Kind: kindDue},
		doubts:   newDoubts(),
		verdicts: newVerdicts(),

		grantKeys: newGrantKeys(o.Records, o.Keyring, unreadableMessage),
	}
}

// GrantKey is grantKeys.Find.
func (a *Approvals) GrantKey(
	ctx context.Context, t id.Tenant,
) (key tlog.VerifierKey, from id.Index, ok bool, err error) {
	return a.grantKeys.Find(ctx, t)
}

func (a *Approvals) currentTime() id.Instant { return id.InstantOf(a.clock()) }

func errNotFound() error { return fault.New(fault.NotFound, "Not found") }

func errConflict(message string) error { return fault.New(fault.Conflict, message) }

// unreadableMessage is the message for clients when approvals cannot be read.
const unreadableMessage = "Approvals can't be read"

// errUnreadable wraps an error of the store: nothing can be said about an approval
// that can't be read.
func errUnreadable(step string, err error) error {
	return records.Unreadable(unreadableMessage, step, err)
}
