package wire

import (
	"github.com/go-json-experiment/json/jsontext"

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
	Rule       Text       `json:"rule_id"`
	Signer     string     `json:"signer"`
	Trace      id.Trace   `json:"trace_id"`
	Principal  Text       `json:"actor_principal"`    // null if the envelope is erased
	ErasedAt   Time       `json:"erased_at,omitzero"` // absent unless the envelope is erased
}

// Tightened reports whether the effective decision differs from the declared one.
func (e Event) Tightened() bool { return e.Declared != e.Effective }

// Predecessor is the frozen log that the log of an answer succeeds. Log indices in an answer belong to the answer's log.
type Predecessor struct {
	Log    id.Origin `json:"log"`    // the value of the parameter log that selects it
	Events id.Index  `json:"events"` // its size
}

// Events is a page of a list of events.
type Events struct {
	Events      []Event      `json:"events"`
	Next        Text         `json:"next"`
	IndexedTo   id.Index     `json:"indexed_to"`  // the list covers events before this index
	Predecessor *Predecessor `json:"predecessor"` // nil for the organization's first log
}

// EventDetail is one event with its documents.
type EventDetail struct {
	Event    `json:",inline"`
	Record   string         `json:"record"`
	Envelope *string        `json:"envelope,omitzero"` // absent if it is erased or the role may not read it
	Bundle   *verify.Bundle `json:"bundle"`            // nil while the ledger can't prove anything
	Before   *Event         `json:"before_in_trace"`
	After    *Event         `json:"after_in_trace"`
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
	Event  `json:",inline"`
	Parent Text `json:"parent_event_id"` // another event of the trace
}

// Tree is a page of the events of a trace, oldest first. Their parents make it a tree.
type Tree struct {
	TraceID     id.Trace     `json:"trace_id"`
	Events      []Step       `json:"events"`
	Next        Text         `json:"next"`
	IndexedTo   id.Index     `json:"indexed_to"`
	Predecessor *Predecessor `json:"predecessor"`
}

// GroupCount is the number of events of one group. It contains only the members of the requested dimensions; a member is
// "" for events that lack the value.
type GroupCount struct {
	Agent    *id.Agent   `json:"agent_id,omitzero"`
	Tool     *id.Tool    `json:"tool_name,omitzero"`
	Decision *string     `json:"decision,omitzero"`
	Rule     *string     `json:"rule_id,omitzero"`
	Hour     *id.Instant `json:"hour,omitzero"`
	Events   uint64      `json:"events"`
}

// Stats are counts of events.
type Stats struct {
	Events      uint64       `json:"events"`
	Counts      []GroupCount `json:"counts"`
	Waits       Waits        `json:"approval_waits"`
	IndexedTo   id.Index     `json:"indexed_to"`
	Predecessor *Predecessor `json:"predecessor"`
}

// Waits are the times from the request for an approval to the vote that decided it.
type Waits struct {
	Decided  int    `json:"decided"`
	P50      *int64 `json:"p50_ms"` // nil if none was decided
	P99      *int64 `json:"p99_ms"`
	Complete bool   `json:"complete"` // covers all decisions, not only the latest ones
}

// AuditEntry is one of the service's own events in the audit list.
type AuditEntry struct {
	Index      id.Index       `json:"log_index"`
	ID         id.Event       `json:"event_id"`
	Hash       id.Hash        `json:"event_hash"`
	ReceivedAt id.Instant     `json:"received_at"`
	Kind       string         `json:"kind"`
	Sentence   string         `json:"sentence"`
	Actor      Actor          `json:"actor"`
	Source     *Source        `json:"source"`  // nil if none was stored
	Payload    jsontext.Value `json:"payload"` // as it was signed; null if the envelope is erased
	Proof      string         `json:"proof"`   // path of the public verification bundle
}

// Actor is who caused a change.
type Actor struct {
	Type  string `json:"type"` // account, operator, ingest_key, or unknown if the envelope is erased
	ID    string `json:"id"`   // of the account or the ingest key; otherwise ""
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
	Principal  Text        `json:"actor_principal"` // null if the envelope is erased
	Outcome    string      `json:"outcome"`
	Decision   id.Decision `json:"decision"` // of the policy
	Policy     Text        `json:"policy_id"`
	Rule       Text        `json:"rule_id"`
	Approval   Text        `json:"approval_id"`
	Votes      []ActVote   `json:"votes"` // on the approval, in the order of the ledger
	Result     *ActResult  `json:"result"`
	ErasedAt   Time        `json:"erased_at,omitzero"` // absent unless the envelope is erased
}

// ActVote is a vote on the approval of an act, or the withdrawal of the approval by a user.
type ActVote struct {
	Account string `json:"account_id"`
	Name    Text   `json:"name"`
	Email   Text   `json:"email"` // null if the account no longer exists
	Vote    string `json:"vote"`  // approve or deny
}

// ActResult is the event that states the result of an act.
type ActResult struct {
	Index id.Index `json:"log_index"`
	ID    id.Event `json:"event_id"`
}

// Acts is a page of a list of acts.
type Acts struct {
	Acts        []Act        `json:"acts"`
	Next        Text         `json:"next"`
	IndexedTo   id.Index     `json:"indexed_to"`
	Predecessor *Predecessor `json:"predecessor"`
}
