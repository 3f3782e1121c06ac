package eventlist

import (
	"strconv"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/verify"
)

// Event is an event in a list.
type Event struct {
	LogIndex   id.Index     `json:"log_index"`
	EventID    id.Event     `json:"event_id"`
	EventHash  id.Hash      `json:"event_hash"`
	ReceivedAt id.Instant   `json:"received_at"`
	AgentID    id.Agent     `json:"agent_id"`
	ToolName   *id.Tool     `json:"tool_name"`
	ActionKind string       `json:"action_kind"`
	Declared   id.Decision  `json:"declared"`
	Effective  id.Decision  `json:"effective"`
	RuleID     *string      `json:"rule_id"`
	Signer     event.Signer `json:"signer"`
	TraceID    id.Trace     `json:"trace_id"`
	Principal  *string      `json:"actor_principal"`    // null when the envelope is erased
	ErasedAt   *id.Instant  `json:"erased_at,omitzero"` // absent when the envelope is there

	erasedBy id.Index // of the event that took the envelope away; 0 when it is there
}

// describe describes a row.
func describe(r index.Row) Event {
	return Event{
		LogIndex: r.Index, EventID: r.Event, EventHash: r.Hash, ReceivedAt: r.ReceivedAt, AgentID: r.Agent,
		ToolName: orNull(r.Tool), ActionKind: r.Kind, Declared: r.Declared, Effective: r.Effective,
		RuleID: orNull(r.Rule), Signer: r.Signer, TraceID: r.Trace, Principal: orNull(r.Principal),
		erasedBy: r.ErasedBy,
	}
}

func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// Events is a page of a list of events.
type Events struct {
	Events    []Event  `json:"events"`
	Next      *string  `json:"next"`
	IndexedTo id.Index `json:"indexed_to"` // the list reaches up to the event before this one

	Predecessor *Predecessor `json:"predecessor"` // null: there is no log before this one
}

// describePage describes a page.
func describePage(p index.Page, of line) Events {
	shown := Events{Events: make([]Event, len(p.Rows)), Next: Cursor(p.Next), IndexedTo: p.End,
		Predecessor: of.predecessor}
	for i := range p.Rows {
		shown.Events[i] = describe(p.Rows[i])
	}
	return shown
}

// Cursor is the after of the next page.
func Cursor(at *id.Index) *string {
	if at == nil {
		return nil
	}
	text := strconv.FormatUint(uint64(*at), 10)
	return &text
}

// Detail is one event with its documents.
type Detail struct {
	Event
	Record   string         `json:"record"`
	Envelope *string        `json:"envelope,omitzero"` // absent for roles that may not read it, and when it is erased
	Bundle   *verify.Bundle `json:"bundle"`            // null while the ledger can prove nothing
	Before   *Event         `json:"before_in_trace"`
	After    *Event         `json:"after_in_trace"`
}

// Trace is a trace in a list.
type Trace struct {
	LogIndex  id.Index            `json:"log_index"` // of the newest event that the filter wants
	TraceID   id.Trace            `json:"trace_id"`
	FirstAt   id.Instant          `json:"first_at"`
	LastAt    id.Instant          `json:"last_at"`
	LastIndex id.Index            `json:"last_log_index"`
	Events    int                 `json:"events"`
	AtLeast   bool                `json:"at_least"` // events and decisions are lower bounds
	Complete  bool                `json:"complete"` // agents are those of all events, and not of the newest 1,000 alone
	Decisions map[id.Decision]int `json:"decisions"`
	Agents    []id.Agent          `json:"agents"`
}

// Traces is a page of a list of traces.
type Traces struct {
	Traces    []Trace  `json:"traces"`
	Next      *string  `json:"next"`
	IndexedTo id.Index `json:"indexed_to"`

	Predecessor *Predecessor `json:"predecessor"`
}

// describeTraces describes a page of traces.
func describeTraces(p index.TracePage, of line) Traces {
	shown := Traces{Traces: make([]Trace, len(p.Traces)), Next: Cursor(p.Next), IndexedTo: p.End,
		Predecessor: of.predecessor}
	for i, t := range p.Traces {
		shown.Traces[i] = Trace{t.At, t.ID, t.First.ReceivedAt, t.Last.ReceivedAt, t.Last.Index, t.Events, t.AtLeast,
			t.Complete, t.Decisions, t.Agents}
	}
	return shown
}

// Step is an event of a trace.
type Step struct {
	Event
	Parent *id.Event `json:"parent_event_id"` // another event of the trace; null for none
}

// Tree is a page of the events of a trace, oldest first. Parents make it a tree.
type Tree struct {
	TraceID   id.Trace `json:"trace_id"`
	Events    []Step   `json:"events"`
	Next      *string  `json:"next"`
	IndexedTo id.Index `json:"indexed_to"`

	Predecessor *Predecessor `json:"predecessor"`
}

// describeTree describes a page of a trace.
func describeTree(trace id.Trace, p index.Page, parents []id.Event, of line) Tree {
	shown := Tree{TraceID: trace, Events: make([]Step, len(p.Rows)), Next: Cursor(p.Next), IndexedTo: p.End,
		Predecessor: of.predecessor}
	for i := range p.Rows {
		shown.Events[i] = Step{describe(p.Rows[i]), orNull(parents[i])}
	}
	return shown
}

// Count is a row of counts. Only the members of the dimensions that were asked for are there.
type Count struct {
	AgentID  *id.Agent    `json:"agent_id,omitzero"`
	ToolName *id.Tool     `json:"tool_name,omitzero"`
	Decision *id.Decision `json:"decision,omitzero"`
	RuleID   *string      `json:"rule_id,omitzero"`
	Hour     *id.Instant  `json:"hour,omitzero"`
	Events   uint64       `json:"events"`
}

// Stats are counts of events.
type Stats struct {
	Events    uint64   `json:"events"`
	Counts    []Count  `json:"counts"`
	Waits     Waits    `json:"approval_waits"`
	IndexedTo id.Index `json:"indexed_to"`

	Predecessor *Predecessor `json:"predecessor"`
}

// describeStats describes counts. A value that an event does not have is "".
func describeStats(s index.Stats, by []index.Dimension, of line) Stats {
	shown := Stats{Events: s.Events, Counts: make([]Count, len(s.Counts)), IndexedTo: s.End,
		Predecessor: of.predecessor}
	for i, c := range s.Counts {
		shown.Counts[i].Events = c.Events
		for _, d := range by {
			shown.Counts[i].describe(d, c.Group)
		}
	}
	return shown
}

func (c *Count) describe(d index.Dimension, g index.Group) {
	switch d {
	case index.Agent:
		c.AgentID = &g.Agent
	case index.Tool:
		c.ToolName = &g.Tool
	case index.Decision:
		c.Decision = &g.Decision
	case index.Rule:
		c.RuleID = &g.Rule
	case index.Hour:
		c.Hour = &g.Hour
	}
}
