package approval

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/flow/openset"
	"github.com/agentledger/agentledger/internal/ratelimit"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
)

// Records of an organization's partition.
const (
	// kindApproval has one record for each approval, by its id.
	kindApproval storage.Kind = "approval"
	// kindOpen has the ID of the open approval of a question, by record.openName.
	kindOpen storage.Kind = "approval_open"
	// kindTally has one record under the key "", with the number of open approvals and the pace at which they are
	// requested, and one for each ingest key, by its ID, and for each agent, by record.agentShare, with the number
	// of its open approvals.
	kindTally storage.Kind = "approval_tally"
)

// kindNewest has one record for each approval, by records.ReverseKey of its ID, so that the latest comes first. The
// record under listedKey means that the list is complete: stores of older programs have no list yet.
const (
	kindNewest storage.Kind = "approval_newest"
	listedKey  string       = "complete"
)

// kindDue has an entry (package schedule) for the expiry of each approval.
const kindDue storage.Kind = "approval_due"

type record struct {
	Status       Status            `json:"status"`
	Agent        id.Agent          `json:"agent_id"`
	AgentName    string            `json:"agent_name,omitzero"` // its display name when it asked; "" if none
	AgentMaker   string            `json:"agent_maker"`         // principal that created the agent
	Tool         id.Tool           `json:"tool_name"`
	ActorType    string            `json:"actor_type,omitzero"`      // "" means agent
	ActionKind   string            `json:"action_kind,omitzero"`     // "" means tool_call
	Intent       id.Event          `json:"intent_event_id,omitzero"` // the stored event that asked; "" if none
	Payload      jsontext.Value    `json:"payload,omitzero"`
	OnBehalfOf   *event.OnBehalfOf `json:"on_behalf_of,omitzero"`
	Standing     event.Standing    `json:"on_behalf_of_standing,omitzero"`
	ActionDigest id.Hash           `json:"action_digest"`
	Trace        id.Trace          `json:"trace_id,omitzero"`
	Principal    string            `json:"actor_principal,omitzero"`
	// Hidden replaces Principal when an open approval is erased. Older programs kept Principal until the approval ended.
	Hidden        Hidden     `json:"hidden_principal,omitzero"`
	IngestKeyID   string     `json:"ingest_key_id"`
	KeyMaker      string     `json:"key_maker"` // principal that created the ingest key
	CallbackURL   string     `json:"callback_url,omitzero"`
	PolicyID      string     `json:"policy_id"`
	PolicyVersion uint64     `json:"policy_version"`
	PolicyDigest  id.Hash    `json:"policy_digest"`
	RuleID        string     `json:"rule_id"`
	Reason        string     `json:"reason"`
	Quorum        int        `json:"quorum"`
	Signed        bool       `json:"signed,omitzero"` // approving votes must be signed
	Votes         []Vote     `json:"votes,omitempty"`
	Revocation    Remark     `json:"revocation,omitzero"`
	Steps         int        `json:"steps"` // recorded transitions
	CreatedAt     id.Instant `json:"created_at"`
	ExpiresAt     id.Instant `json:"expires_at"`
	EndedAt       id.Instant `json:"ended_at,omitzero"`
	// RemindAt and EscalateAt are when voters are notified again; 0 for never. RemindedAt is when they last were.
	RemindAt      id.Instant   `json:"remind_at,omitzero"`
	EscalateAt    id.Instant   `json:"escalate_at,omitzero"`
	EscalateTo    account.Role `json:"escalate_to,omitzero"`
	RemindedAt    id.Instant   `json:"reminded_at,omitzero"`
	ErasedAt      id.Instant   `json:"erased_at,omitzero"` // when the payload was erased
	Grant         string       `json:"grant,omitzero"`     // the signed note
	GrantEnds     id.Instant   `json:"grant_ends,omitzero"`
	Shared        bool         `json:"shared,omitzero"`          // counts toward its ingest key; false in older records
	SharedByAgent bool         `json:"shared_by_agent,omitzero"` // counts toward its agent; false in older records
	// Unproved is true if only the ingest key said which agent asks: no event was signed, and the key may act for all
	// agents. It is false in older records, which count toward the agent by whichever keys.
	Unproved bool `json:"unproved_agent,omitzero"`
}

// shares returns the limits of the holders that an approval counts for.
func (r *record) shares() []openset.Share {
	return []openset.Share{
		{Key: r.IngestKeyID, Most: MaxOpenByKey, TooMany: "500 approvals of this ingest key are open: decide or cancel some of them"},
		{Key: r.agentShare(), Most: MaxOpenByAgent, TooMany: "250 approvals of this agent are open: decide or cancel some of them"},
	}
}

// agentShare returns the key of an agent's share. No ingest key and no agent has a slash in its ID. An agent that is not
// proved has a share with each ingest key, so that no key can fill the share of another key's agent.
func (r *record) agentShare() string {
	if r.Unproved {
		return "agent/" + string(r.Agent) + "/" + r.IngestKeyID
	}
	return "agent/" + string(r.Agent)
}

// heldShares returns the keys of the holders that an approval was counted for.
func (r *record) heldShares() (keys []string) {
	if r.Shared {
		keys = append(keys, r.IngestKeyID)
	}
	if r.SharedByAgent {
		keys = append(keys, r.agentShare())
	}
	return keys
}

// statusByTime returns the current status, except for changes of the policy, which judge.findStatus considers too. An
// approval whose creation is in the future is expired: a clock was wrong, and the approval would be open for too long.
func (r *record) statusByTime(now id.Instant) Status {
	if r.Status.Open() && (now >= r.ExpiresAt || r.CreatedAt > now+id.Instant(clock.Bound.Milliseconds())) {
		return Expired
	}
	return r.Status
}

func (r *record) toApproval(name ID, status Status) Approval {
	shown := r.Principal
	if r.ErasedAt != 0 {
		shown = ""
	}
	return Approval{
		ID: name, Status: status, Agent: r.Agent, AgentName: r.nameOfAgent(), Tool: r.Tool, Payload: r.Payload, ActionDigest: r.ActionDigest,
		OnBehalfOf: r.OnBehalfOf, Standing: r.Standing,
		Trace: r.Trace, Principal: shown, IngestKeyID: r.IngestKeyID, Intent: r.Intent, CallbackURL: r.CallbackURL,
		PolicyID: r.PolicyID, PolicyVersion: r.PolicyVersion,
		PolicyDigest: r.PolicyDigest, RuleID: r.RuleID, Reason: r.Reason,
		Signed: r.Signed, Quorum: r.Quorum, Votes: r.Votes, Remark: r.remarkAt(status),
		CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt, EndedAt: r.EndedAt, ErasedAt: r.ErasedAt,
		remindAt: r.RemindAt, escalateAt: r.EscalateAt, escalateTo: r.EscalateTo,
		keyMaker: r.KeyMaker, agentMaker: r.AgentMaker, principal: r.Principal, hidden: r.Hidden,
	}
}

// nameOfAgent returns the agent's name for people.
func (r *record) nameOfAgent() string { return cmp.Or(r.AgentName, string(r.Agent)) }

// eraseTexts removes the texts of the agent, and the subject. An open approval keeps a salted hash of the principal, because that account
// may not vote, and the callback address. Both are removed when the approval ends.
func (r *record) eraseTexts(at id.Instant) {
	if r.ErasedAt == 0 {
		r.Payload, r.OnBehalfOf, r.Standing, r.ErasedAt = nil, nil, "", at
	}
	if r.Principal != "" {
		r.Hidden, r.Principal = Hide(r.Principal), ""
	}
	if !r.Status.Open() {
		r.Hidden, r.CallbackURL = Hidden{}, ""
	}
}

// remarkAt returns the remark of the decision that led to a status. No vote follows the deciding one, so it is the last
// one.
func (r *record) remarkAt(status Status) Remark {
	switch status {
	case Revoked:
		return r.Revocation
	case Approved, Denied, Consumed:
		if last := len(r.Votes) - 1; last >= 0 {
			return Remark{r.Votes[last].Comment, r.Votes[last].Code}
		}
	}
	return Remark{}
}

// voteOf returns the vote of an account, or "".
func (a *Approval) voteOf(who account.ID) string {
	for _, v := range a.Votes {
		if v.Account == who {
			return v.Vote
		}
	}
	return ""
}

// openName identifies a question: one action, one ingest key, one trace, and the event if one asked.
func (r *record) openName() string {
	text := fmt.Appendf(nil, "%s\n%s\n%s", r.ActionDigest, r.IngestKeyID, r.Trace)
	if r.Intent != "" {
		text = fmt.Appendf(text, "\n%s", r.Intent)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

type openRecord struct {
	Approval ID `json:"approval_id"`
}

type tallyRecord struct {
	Open  int            `json:"open"`
	Asked ratelimit.GCRA `json:"asked"`
}

// shareRecord is the number of open approvals of an ingest key or an agent.
type shareRecord struct {
	Open int `json:"open"`
}

type (
	openSet    = openset.Set[tallyRecord, shareRecord, listRecord]
	openChange = openset.Change[tallyRecord, shareRecord, listRecord]
)

func newOpenSet(r storage.RecordStore) *openSet {
	return openset.New(openset.Options[tallyRecord, shareRecord, listRecord]{
		Records: r, Tallies: kindTally, List: kindNewest, Message: unreadableMessage,
		Tally: func(t *tallyRecord) (*int, *ratelimit.GCRA) { return &t.Open, &t.Asked },
		Share: func(s *shareRecord) *int { return &s.Open },
		Bounds: openset.Bounds{
			Open: MaxOpen, TooMany: "1000 approvals are open: decide or cancel some of them",
			Burst: MaxAsked, Every: askEvery, TooFast: "Too many approvals were asked for: at most 10000 in an hour",
		},
	})
}

// stores are the records of each kind.
type stores struct {
	approvals records.Store[record]
	questions records.Store[openRecord]
	intents   records.Store[openRecord]
	open      *openSet
}

func storesOf(r storage.RecordStore) stores {
	return stores{
		approvals: records.New[record](r, kindApproval, unreadableMessage),
		questions: records.New[openRecord](r, kindOpen, unreadableMessage),
		intents:   records.New[openRecord](r, kindIntent, unreadableMessage),
		open:      newOpenSet(r),
	}
}

// readApproval returns an approval, or fault.NotFound.
func (a *Approvals) readApproval(ctx context.Context, t id.Tenant, name ID) (records.Versioned[record], error) {
	r, err := a.stores.approvals.Get(ctx, t, string(name))
	if err == nil && r.Version == 0 {
		err = errNotFound()
	}
	return r, err
}
