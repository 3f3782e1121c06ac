package eventlist

import (
	"strconv"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/wire"
)

// describe describes a row, except for the time of an erasure.
func describe(r index.Row) wire.Event {
	return wire.Event{
		Index: r.Index, ID: r.Event, Hash: r.Hash, ReceivedAt: r.ReceivedAt, Agent: r.Agent, Tool: wire.Text(r.Tool),
		Kind: r.Kind, Declared: r.Declared.String(), Effective: r.Effective.String(), DecidedBy: describePolicy(&r),
		Signer: string(r.Signer), Trace: r.Trace, Caller: r.Caller, Principal: wire.Text(r.Principal),
		OnBehalfOf: describeOnBehalfOf(&r),
	}
}

// describePolicy describes what decided on a row.
func describePolicy(r *index.Row) wire.DecidedBy {
	by := wire.DecidedBy{Policy: wire.Text(r.Policy), Version: wire.Number(r.Version), Rule: wire.Text(r.Rule)}
	if r.Digest != (id.Hash{}) {
		by.Digest = wire.Text(r.Digest.String())
	}
	return by
}

// DescribeLink describes the act of an event, or returns nil if r is nil.
func DescribeLink(r *index.Row) *wire.ActLink {
	if r == nil {
		return nil
	}
	link := &wire.ActLink{Index: r.Index, ID: r.Event, Outcome: r.Act.Outcome.String(), Approval: wire.Text(r.Act.Approval)}
	if r.Act.Result != 0 {
		link.Result = &r.Act.Result
	}
	return link
}

// describePage describes a page.
func describePage(p index.Page, of line) wire.Events {
	shown := wire.Events{Events: make([]wire.ListedEvent, len(p.Rows)), Next: Cursor(p.Next), IndexedTo: p.End,
		Predecessor: of.predecessor}
	for i := range p.Rows {
		shown.Events[i].Event = describe(p.Rows[i])
	}
	return shown
}

// describeSearch describes how far a page of a query looked, or returns nil without a text.
func describeSearch(q *index.Query, p *index.Page) *wire.Searched {
	if q.Text == "" {
		return nil
	}
	shown := &wire.Searched{Looked: p.Looked}
	if p.Looked > 0 || p.Next != nil {
		shown.LookedTo = &wire.LookedTo{Index: p.LookedTo, ReceivedAt: p.LookedToAt}
	}
	return shown
}

// Cursor returns the parameter after of the next page, "" if at is nil.
func Cursor(at *id.Index) wire.Text {
	if at == nil {
		return ""
	}
	return wire.Text(strconv.FormatUint(uint64(*at), 10))
}

// describeTraces describes a page of traces.
func describeTraces(p index.TracePage, of line) wire.Traces {
	shown := wire.Traces{Traces: make([]wire.Trace, len(p.Traces)), Next: Cursor(p.Next), IndexedTo: p.End,
		Predecessor: of.predecessor}
	for i, t := range p.Traces {
		decisions := make(map[string]int, len(t.Decisions))
		for d, n := range t.Decisions {
			decisions[d.String()] = n
		}
		shown.Traces[i] = wire.Trace{Index: t.At, ID: t.ID, FirstAt: t.First.ReceivedAt, LastAt: t.Last.ReceivedAt,
			LastIndex: t.Last.Index, Events: t.Events, AtLeast: t.AtLeast, Complete: t.Complete, Decisions: decisions,
			Agents: t.Agents}
	}
	return shown
}

// describeTree describes a page of a trace.
func describeTree(trace id.Trace, p index.Page, parents []id.Event, of line) wire.Tree {
	shown := wire.Tree{TraceID: trace, Events: make([]wire.Step, len(p.Rows)), Next: Cursor(p.Next), IndexedTo: p.End,
		Predecessor: of.predecessor}
	for i := range p.Rows {
		shown.Events[i] = wire.Step{ListedEvent: wire.ListedEvent{Event: describe(p.Rows[i])}, Parent: wire.Text(parents[i])}
	}
	return shown
}

// describeOnBehalfOf returns nil for an event that does not state for whom the agent acted.
func describeOnBehalfOf(r *index.Row) *wire.OnBehalfOf {
	if r.OnBehalfOf == "" {
		return nil
	}
	o, err := event.ParseOnBehalfOf([]byte(r.OnBehalfOf))
	if err != nil {
		return nil
	}
	return &wire.OnBehalfOf{OnBehalfOf: *o, Verified: r.Verified}
}
