// Package approval implements the obligation workflow: an agent asks for permission, approvers vote, and the agent
// consumes the permission once and executes the action.
//
//	pending -> approved -> consumed
//	pending -> denied
//	pending, approved -> expired, cancelled (by the asking key), revoked (by a user),
//	                     invalidated (the active policy no longer asks for it)
//
// vote.go decides whether a user may vote, and counts the vote. voteobstacle.go makes the same checks without a vote, so
// that a list can say why a user may not vote. quorum.go decides which votes still count.
//
// Invariants:
//
//   - Every transition is a ledger_approval event, in one append with the change.
//   - Time never approves: an approval expires at its time, even before the event that records that is written.
//   - Under another policy, an approval remains valid while that policy, evaluated with the same input, asks for the
//     same approval or a weaker one by the same rule ID. Otherwise it is invalid immediately, even before the event
//     that records that is written. Its own quorum and expiry do not change.
//   - An approval is bound to one action (action_digest, with the subject on whose behalf the agent acts), one ingest
//     key and the policy digest that it was requested under. It is consumed once, either by the key that requested it, with the proof of an active key of the agent, or
//     by a step of a keyless tool in the append of that step. The grant is signed and valid for five minutes.
//   - An event that needs approval asks once: every later question of the same event finds that approval, in any state.
//   - A vote counts while its voter may vote. A user votes once, and not on an own request unless the organization
//     allows self-review.
//   - A deputy is a member whose own role does not vote. A member and the deputy have one vote together on each approval,
//     and the deputy votes on what neither of them requested. A deputy's vote names the member (deputy_for). It counts
//     while the deputy is a member and one of the two may vote, also after the period. A deputy represents one member, and
//     nobody else through that member.
//   - The log contains how a voter signs in at the time of the vote: a change that the voter did not prove is recorded
//     before the vote, and an organization may reject the votes of such a member for some time.
//   - If signed votes are required, an approving vote needs a signature by the voter's passkey over its own action.
//     Whether they are required is decided when the approval is requested. A denial needs no signature.
//   - Roles, keys and policy are read from the ledger state that guards the append, or in the same preparation.
//   - A callback reports each change of state. Its delivery is written in the same append.
//   - The key that signs an organization's grants is generated for the first grant, in the append that records it. It
//     is stored sealed, unsealed only to sign, and belongs to one log: the log's successor gets another one.
//   - A principal is the sender's free text. It is compared with the names of users and never changed. The comparison
//     is strict: a text that contains a name anywhere mentions the account. It works on an erased principal too, whose
//     text cannot be recovered.
//   - An approval with a payload can be found by the digest of its action, so that the erasure of an event also erases
//     the payloads of its approvals. The entry is written in the append that asks and removed in the append that
//     erases.
//   - A waiting caller costs no goroutine of this package, and an idle organization costs nothing.
//   - Nothing of one organization is visible to another organization.
package approval

import (
	"context"
	"time"

	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/tenant/voterkey"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
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

	// MaxOpenByKey is the number of open approvals that one ingest key may have requested: half of MaxOpen, so that no
	// key uses up the capacity of the organization.
	MaxOpenByKey = MaxOpen / 2

	// MaxOpenByAgent is the number of open approvals of one agent: a quarter of MaxOpen, so that agents that share a key
	// leave each other capacity too. Approvals whose agent is proved, by a signed event or by a key that is restricted to
	// agents, count by all ingest keys together, and the others for each key alone.
	MaxOpenByAgent = MaxOpen / 4

	// MaxAsked is the number of approvals that may be requested at once. As many more may be requested in each hour,
	// because the events of approvals do not count toward a plan.
	MaxAsked = 10_000
	askEvery = time.Hour / MaxAsked
)

// ID identifies an approval. IDs increase with their time of creation.
type ID string

func newApprovalID(now id.Instant) ID { return ID(id.Rising("apr_", now)) }

// Status is the state of an approval.
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

// Open reports whether the state can still change.
func (s Status) Open() bool { return s == Pending || s == Approved }

// Valid reports whether s is one of the states.
func (s Status) Valid() bool {
	switch s {
	case Pending, Approved, Consumed, Denied, Expired, Cancelled, Revoked, Invalidated:
		return true
	}
	return false
}

// Vote is the ballot of one voter.
type Vote struct {
	Account account.ID `json:"account"`
	Email   string     `json:"email"`
	Vote    string     `json:"vote"` // approve or deny
	Comment string     `json:"comment"`
	Code    string     `json:"reason_code,omitzero"`
	Via     string     `json:"via,omitzero"` // ViaSlack; "" for a vote on the service's own pages and interface
	At      id.Instant `json:"at"`
	// DeputyFor is the member in whose place the voter voted, or "".
	DeputyFor account.ID `json:"deputy_for,omitzero"`
	// Signature is by the voter's passkey, or nil if the vote is an unverified operator claim.
	Signature *VoteSignature `json:"signature,omitempty"`
}

// VoteSignature identifies the voter key that signed a vote. The signature itself is in the event.
type VoteSignature struct {
	CredentialID    signedvote.Bytes `json:"credential_id"`
	Thumbprint      string           `json:"thumbprint"`
	KeyRegisteredAt id.Instant       `json:"key_registered_at"`
}

// Remark is a user's comment on a decision. The agent gets it with the decision, without a name.
type Remark struct {
	Comment string `json:"comment,omitzero"`     // at most 1,024 characters; "" if none
	Code    string `json:"reason_code,omitzero"` // for programs, [a-z][a-z0-9_]{0,63}; "" if none
}

// Approval is one request for permission. It is immutable.
type Approval struct {
	ID            ID
	Status        Status // when it was read
	Agent         id.Agent
	AgentName     string // for people: the display name when it asked, or its ID
	Tool          id.Tool
	Payload       jsontext.Value    // canonical; nil if it is erased
	OnBehalfOf    *event.OnBehalfOf // nil if absent or erased
	Standing      event.Standing    // of OnBehalfOf
	ActionDigest  id.Hash
	Trace         id.Trace // "" if none
	Principal     string   // a name that the agent chose; "" if absent or erased
	IngestKeyID   string   // the key that asked
	Intent        id.Event // the stored event that asked; "" if none
	CallbackURL   string   // "" if none
	PolicyID      string
	PolicyVersion uint64
	PolicyDigest  id.Hash
	RuleID        string
	Reason        string // of the rule
	Quorum        int
	Signed        bool // approving votes must be signed by a passkey
	Votes         []Vote
	Remark        Remark // of the deciding vote or of the revocation
	CreatedAt     id.Instant
	ExpiresAt     id.Instant
	EndedAt       id.Instant // 0 if it is open
	ErasedAt      id.Instant // when the payload was erased; 0 if it was not

	remindAt             id.Instant   // 0 for never
	escalateAt           id.Instant   // 0 if it never escalates
	escalateTo           account.Role // not notified before escalateAt
	keyMaker, agentMaker string       // principals that created the ingest key and the agent
	principal            string       // as sent, "" if erased
	hidden               Hidden
}

// mentions reports whether the principal mentions a name of an account.
func (a *Approval) mentions(name string) bool {
	return mentions(a.principal, name) || a.hidden.Mentions(name)
}

// Organizations provides settings and ingest keys. org.Orgs implements it.
type Organizations interface {
	Settings(ctx context.Context, s *log.State) (*org.Settings, error)
	IngestKey(ctx context.Context, t id.Tenant, key string) (org.IngestKey, error)
}

// Members provides the roles of members, and so their right to vote, and their accounts. It returns fault.NotFound for
// an account that is no member. account.Accounts implements it.
type Members interface {
	Membership(ctx context.Context, t id.Tenant, who account.ID) (account.Membership, error)
	ByID(ctx context.Context, who account.ID) (account.Account, error)
}

// Deputies provides who votes in place of whom. member.Members implements it.
type Deputies interface {
	// Represented returns the members in whose place others vote now, by the accounts of those deputies.
	Represented(ctx context.Context, t id.Tenant) (map[account.ID]account.ID, error)
}

// Deliveries writes the deliveries of webhooks. webhook.Sender implements it.
type Deliveries interface {
	// CheckAddress returns fault.Invalid if an address cannot be a receiver.
	CheckAddress(address string) error
	// WriteDelivery returns the records of deliveries.
	WriteDelivery(
		ctx context.Context, t id.Tenant, organization id.Organization, messages ...webhook.Message,
	) ([]storage.Change, error)
}

// Options configure New. All but Deputies, SignIns, VoterKeys, Clock and Held are required.
type Options struct {
	Records       storage.RecordStore
	Events        *sysevent.Appender
	Ledgers       *log.Ledgers
	Policies      policystore.ActiveSource
	Agents        *agent.Agents
	Organizations Organizations
	Members       Members
	Deputies      Deputies        // default: nobody has a deputy
	SignIns       *member.Members // default: changes of sign-ins are not recorded
	VoterKeys     *voterkey.Keys  // default: votes cannot be signed
	Webhooks      Deliveries
	Keyring       *seal.Keyring    // seals grant keys
	Clock         func() time.Time // default: time.Now
	Held          func() error     // returns an error while Run must not sweep; nil: never
}

// Approvals contains the approvals of all organizations. Its methods may be called concurrently.
type Approvals struct {
	stores   stores
	events   *sysevent.Appender
	ledgers  *log.Ledgers
	policies policystore.ActiveSource
	agents   *agent.Agents
	orgs     Organizations
	members  Members
	deputies Deputies
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
		orgs: o.Organizations, members: o.Members, deputies: o.Deputies, signIns: o.SignIns, voters: o.VoterKeys, webhooks: o.Webhooks, clock: o.Clock,
		held:     o.Held,
		due:      schedule.Index{Records: o.Records, Kind: kindDue},
		doubts:   newDoubts(),
		verdicts: newVerdicts(),

		grantKeys: newGrantKeys(o.Records, o.Keyring, unreadableMessage),
	}
}

// GrantKey calls grantKeys.Find.
func (a *Approvals) GrantKey(
	ctx context.Context, t id.Tenant,
) (key tlog.VerifierKey, from id.Index, ok bool, err error) {
	return a.grantKeys.Find(ctx, t)
}

func (a *Approvals) currentTime() id.Instant { return id.InstantOf(a.clock()) }

func errNotFound() error { return fault.New(fault.NotFound, "Not found") }

func errConflict(message string) error { return fault.New(fault.Conflict, message) }

// unreadableMessage is the message for clients if approvals cannot be read.
const unreadableMessage = "Approvals can't be read"

// errUnreadable wraps an error of the store.
func errUnreadable(step string, err error) error {
	return records.Unreadable(unreadableMessage, step, err)
}
