package wire

import (
	"iter"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// Event is an event in a list.
type Event struct {
	Index      id.Index   `json:"log_index"`
	ID         id.Event   `json:"event_id"`
	Hash       id.Hash    `json:"event_hash"`
	ReceivedAt id.Instant `json:"received_at"`
	Agent      id.Agent   `json:"agent_id"`
	Tool       Text       `json:"tool_name"`
	Kind       string     `json:"action_kind"`
	Declared   string     `json:"declared"`
	Effective  string     `json:"effective"`
	DecidedBy  `json:",inline"`
	Signer     string   `json:"signer"`
	Trace      id.Trace `json:"trace_id"`
	Caller     id.Trace `json:"caller_trace_id,omitzero"` // of the caller's traceparent; absent if none or equal to Trace
	Principal  Text     `json:"actor_principal"`          // null if the envelope is erased
	// OnBehalfOf is for whom the agent acted; absent if the event does not state it, or if the envelope is erased.
	OnBehalfOf *OnBehalfOf `json:"on_behalf_of,omitzero"`
	ErasedAt   Time        `json:"erased_at,omitzero"` // absent unless the envelope is erased
}

// OnBehalfOf is for whom an agent acted, as the event states it.
type OnBehalfOf struct {
	event.OnBehalfOf `json:",inline"`
	Verified         bool `json:"verified"` // whether the service verified a token of the issuer; otherwise the agent claims it
}

// DecidedBy is the version of a policy, and the rule, that decided on an event. Its members are null for an event on which no policy decided.
type DecidedBy struct {
	Policy  Text   `json:"policy_id"`
	Version Number `json:"policy_version"`
	Digest  Text   `json:"policy_digest"`
	Rule    Text   `json:"rule_id"`
}

// Tightened reports whether the effective decision differs from the declared one.
func (e Event) Tightened() bool { return e.Declared != e.Effective }

// Predecessor is the frozen log that the log of an answer succeeds. Log indices in an answer belong to the answer's log.
type Predecessor struct {
	Log    id.Origin `json:"log"`    // the value of the parameter log that selects it
	Events id.Index  `json:"events"` // its size
}

// ListedEvent is an event of a list.
type ListedEvent struct {
	Event `json:",inline"`
	Act   *ActLink `json:"act"` // nil if the event is about none
}

// Events is a page of a list of events.
type Events struct {
	Events      []ListedEvent `json:"events"`
	Next        Text          `json:"next"`
	IndexedTo   id.Index      `json:"indexed_to"`  // the list covers events before this index
	Predecessor *Predecessor  `json:"predecessor"` // nil for the organization's first log
	*Searched   `json:",inline"`
}

// Searched is how far a page of a text search looked. Other pages lack its members.
type Searched struct {
	Looked   int       `json:"looked"` // events that were searched for the text
	LookedTo *LookedTo `json:"looked_to"`
}

// LookedTo is the event up to which a search looked, in the order of the list. It may be one that the filters exclude.
type LookedTo struct {
	Index      id.Index   `json:"log_index"`
	ReceivedAt id.Instant `json:"received_at"`
}

// EventDetail is one event with its documents.
type EventDetail struct {
	Event    `json:",inline"`
	Record   string         `json:"record"`
	Envelope *string        `json:"envelope,omitzero"` // absent if it is erased or the role may not read it
	Bundle   *verify.Bundle `json:"bundle"`            // nil while the ledger can't prove anything
	Before   *Event         `json:"before_in_trace"`
	After    *Event         `json:"after_in_trace"`
	Act      *ActLink       `json:"act"` // nil if the event is about none
}

// ActLink is the act that an event is about: the event itself, or the act whose result it states or to whose approval it belongs.
type ActLink struct {
	Index    id.Index  `json:"log_index"`
	ID       id.Event  `json:"event_id"`
	Outcome  string    `json:"outcome"`
	Approval Text      `json:"approval_id"`
	Result   *id.Index `json:"result_index"`
}

// Trace is a trace in a list.
type Trace struct {
	Index     id.Index       `json:"log_index"` // of the latest event that matches the filter
	ID        id.Trace       `json:"trace_id"`
	FirstAt   id.Instant     `json:"first_at"`
	LastAt    id.Instant     `json:"last_at"`
	LastIndex id.Index       `json:"last_log_index"`
	Events    int            `json:"events"`
	AtLeast   bool           `json:"at_least"` // Events and Decisions are lower bounds
	Complete  bool           `json:"complete"` // Agents covers all events, not only the latest 1,000
	Decisions map[string]int `json:"decisions"`
	Agents    []id.Agent     `json:"agents"`
}

// Traces is a page of a list of traces.
type Traces struct {
	Traces      []Trace      `json:"traces"`
	Next        Text         `json:"next"`
	IndexedTo   id.Index     `json:"indexed_to"`
	Predecessor *Predecessor `json:"predecessor"`
}

// Step is an event of a trace.
type Step struct {
	ListedEvent `json:",inline"`
	Parent      Text `json:"parent_event_id"` // another event of the trace
}

// Tree is a page of the events of a trace, oldest first. Their parents make it a tree.
type Tree struct {
	TraceID     id.Trace     `json:"trace_id"`
	Events      []Step       `json:"events"`
	Next        Text         `json:"next"`
	IndexedTo   id.Index     `json:"indexed_to"`
	Predecessor *Predecessor `json:"predecessor"`
}

// AuditEntry is one of the service's own events in the audit list.
type AuditEntry struct {
	Index      id.Index       `json:"log_index"`
	ID         id.Event       `json:"event_id"`
	Hash       id.Hash        `json:"event_hash"`
	ReceivedAt id.Instant     `json:"received_at"`
	Kind       string         `json:"kind"`
	Sentence   string         `json:"sentence"`
	Change     string         `json:"-"` // the sentence without where the call came from
	Actor      Actor          `json:"actor"`
	Source     *Source        `json:"source"`  // nil if none was stored
	Payload    jsontext.Value `json:"payload"` // as it was signed; null if the envelope is erased
	Proof      string         `json:"proof"`   // path of the public verification bundle
}

// Actor is who caused a change.
type Actor struct {
	Type  string `json:"type"` // account, operator, ingest_key, share, or unknown if the envelope is erased
	ID    string `json:"id"`   // of the account, the ingest key or the link; otherwise ""
	Name  string `json:"name"`
	Email string `json:"email"`
	Token string `json:"token"` // public name of the console token that acted for the account
}

// Source is where the call that caused a change came from.
type Source struct {
	Credential string `json:"credential"`
	ID         string `json:"id,omitzero"` // public name of the session or token
	Address    string `json:"address,omitzero"`
}

// AuditEntries is a page of the audit list.
type AuditEntries struct {
	Entries   []AuditEntry `json:"acts"`
	Next      Text         `json:"next"`
	IndexedTo id.Index     `json:"indexed_to"` // the list covers events before this index
}

// Act is an act of an agent in a list: an event on which a policy decided, and what became of it.
type Act struct {
	Index      id.Index    `json:"log_index"`
	ID         id.Event    `json:"event_id"`
	Hash       id.Hash     `json:"event_hash"`
	ReceivedAt id.Instant  `json:"received_at"`
	Agent      id.Agent    `json:"agent_id"`
	AgentName  Text        `json:"agent_name"`
	Tool       id.Tool     `json:"tool_name"`
	Kind       string      `json:"action_kind"`
	Trace      id.Trace    `json:"trace_id"`
	Caller     id.Trace    `json:"caller_trace_id,omitzero"` // of the caller's traceparent; absent if none or equal to Trace
	Principal  Text        `json:"actor_principal"`          // null if the envelope is erased
	OnBehalfOf *OnBehalfOf `json:"on_behalf_of,omitzero"`    // as of an event
	Outcome    string      `json:"outcome"`
	Decision   id.Decision `json:"decision"` // of the policy
	DecidedBy  `json:",inline"`
	Approval   Text       `json:"approval_id"`
	Votes      []ActVote  `json:"votes"` // on the approval, in the order of the ledger
	Result     *ActResult `json:"result"`
	ErasedAt   Time       `json:"erased_at,omitzero"` // absent unless the envelope is erased

	// Columns are the values of the organization's columns, by path: a number, a text, or null. Absent are the reasons for null: missing,
	// other_type, too_long or erased. Both are only for roles that read payloads.
	Columns map[string]jsontext.Value `json:"columns,omitempty"`
	Absent  map[string]string         `json:"absent,omitempty"`

	Identifiers *ActIdentifiers `json:"identifiers,omitzero"` // absent unless requested
}

// ActIdentifiers are what the record of a tool may have of a call. They are read from envelopes, so they are null if the envelope
// is erased.
type ActIdentifiers struct {
	CallID       Text `json:"call_id"`       // of the payload, if it is a text of at most 256 bytes
	InputDigest  Text `json:"input_digest"`  // SHA-256 of the arguments in exact form: of the payload, or computed from it
	ActionDigest Text `json:"action_digest"` // of agent, tool, payload and subject
	GrantNonce   Text `json:"grant_nonce"`   // as the result states it
}

// ActVote is a vote on the approval of an act, or the withdrawal of the approval by a user.
type ActVote struct {
	Account string `json:"account_id"`
	Name    Text   `json:"name"`
	Email   Text   `json:"email"` // null if the account no longer exists
	Vote    string `json:"vote"`  // approve or deny
	// DeputyFor is the account in whose place a deputy voted, with its name, or its email address if it has none.
	DeputyFor     string `json:"deputy_for,omitzero"`
	DeputyForName string `json:"deputy_for_name,omitzero"`
}

// ActResult is the event that states the result of an act.
type ActResult struct {
	Index id.Index `json:"log_index"`
	ID    id.Event `json:"event_id"`
	// Receipt is what the receipt of a tool in the result shows: unchecked, confirmed or wrong; absent if there is none.
	Receipt     string `json:"receipt,omitzero"`
	ConfirmedBy string `json:"confirmed_by,omitzero"` // the name of the tool's key; absent unless Receipt is confirmed
}

// Acts is a page of a list of acts.
type Acts struct {
	Acts        []Act        `json:"acts"`
	Columns     []string     `json:"columns,omitempty"` // the paths in Act.Columns, in the order of the settings
	Next        Text         `json:"next"`
	IndexedTo   id.Index     `json:"indexed_to"`
	Predecessor *Predecessor `json:"predecessor"`
	*Searched   `json:",inline"`
}

// Cut is the last line of a stream of NDJSON that ends at its limit although there are more rows.
type Cut struct {
	Cut  bool `json:"cut"`
	Next Text `json:"next"` // the parameter after of the next row
}

// ActCount is the number of acts of one group. It contains only the members of the requested dimensions; a member is "" for
// acts that lack the value.
type ActCount struct {
	Outcome       *string        `json:"outcome,omitzero"`
	Agent         *id.Agent      `json:"agent_id,omitzero"`
	Tool          *id.Tool       `json:"tool_name,omitzero"`
	Decision      *string        `json:"decision,omitzero"`
	Declared      *string        `json:"declared,omitzero"`
	Rule          *string        `json:"rule_id,omitzero"`
	Approver      *string        `json:"approver,omitzero"`       // account ID
	ApproverName  *string        `json:"approver_name,omitzero"`  // current one
	ApproverEmail *string        `json:"approver_email,omitzero"` // current one
	Hour          *id.Instant    `json:"hour,omitzero"`
	Day           *id.Instant    `json:"day,omitzero"`
	Acts          uint64         `json:"acts"`
	Approvals     ApprovalCounts `json:"approvals"`
}

// ApprovalCounts are the numbers of acts by the state of their approval. Requested is the sum of the next five.
type ApprovalCounts struct {
	Requested uint64 `json:"requested"`
	Waiting   uint64 `json:"waiting"`
	Approved  uint64 `json:"approved"`
	Refused   uint64 `json:"refused"`
	Expired   uint64 `json:"expired"`
	Cancelled uint64 `json:"cancelled"`
	Done      uint64 `json:"done"`        // approved, and the act is done
	P50       *int64 `json:"wait_p50_ms"` // from the request to the decision; nil if none was approved or refused
	P90       *int64 `json:"wait_p90_ms"`
}

// OutcomeCounts are the numbers of acts by outcome.
type OutcomeCounts struct {
	Done      uint64 `json:"done"`
	Failed    uint64 `json:"failed"`
	Refused   uint64 `json:"refused"`
	Denied    uint64 `json:"denied"`
	Expired   uint64 `json:"expired"`
	Cancelled uint64 `json:"cancelled"`
	Unknown   uint64 `json:"unknown"`
	Waiting   uint64 `json:"waiting"`
	Open      uint64 `json:"open"`
}

// Outcomes returns the outcomes of acts, in the order of their precedence.
func Outcomes() []string {
	return []string{"done", "failed", "refused", "denied", "expired", "cancelled", "unknown", "waiting", "open"}
}

// All yields the outcomes with their counts, in the order of Outcomes.
func (c OutcomeCounts) All() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for i, n := range []uint64{c.Done, c.Failed, c.Refused, c.Denied, c.Expired, c.Cancelled, c.Unknown, c.Waiting, c.Open} {
			if !yield(Outcomes()[i], n) {
				return
			}
		}
	}
}

// Stats are counts of acts.
type Stats struct {
	Acts        uint64         `json:"acts"`
	Outcomes    OutcomeCounts  `json:"outcomes"`
	Approvals   ApprovalCounts `json:"approvals"`
	Counts      []ActCount     `json:"counts"`
	IndexedTo   id.Index       `json:"indexed_to"`
	Predecessor *Predecessor   `json:"predecessor"`
}
