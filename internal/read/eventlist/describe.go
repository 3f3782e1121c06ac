package eventlist

import (
	"strconv"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/wire"
)

// describe describes a row, except for the time of an erasure.
func describe(r index.Row) wire.Event {
	return wire.Event{
		Index: r.Index, ID: r.Event, Hash: r.Hash, ReceivedAt: r.ReceivedAt, Agent: r.Agent, Tool: wire.Text(r.Tool),
		Kind: r.Kind, Declared: r.Declared.String(), Effective: r.Effective.String(), Rule: wire.Text(r.Rule),
		Signer: string(r.Signer), Trace: r.Trace, Principal: wire.Text(r.Principal),
	}
}

// describePage describes a page.
func describePage(p index.Page, of line) wire.Events {
	shown := wire.Events{Events: make([]wire.Event, len(p.Rows)), Next: Cursor(p.Next), IndexedTo: p.End,
		Predecessor: of.predecessor}
	for i := range p.Rows {
		shown.Events[i] = describe(p.Rows[i])
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
		shown.Events[i] = wire.Step{Event: describe(p.Rows[i]), Parent: wire.Text(parents[i])}
	}
	return shown
}

// describeStats describes counts. A value that an event does not have is "".
func describeStats(s index.Stats, by []index.Dimension, of line) wire.Stats {
	shown := wire.Stats{Events: s.Events, Counts: make([]wire.GroupCount, len(s.Counts)), IndexedTo: s.End,
		Predecessor: of.predecessor}
	for i, c := range s.Counts {
		shown.Counts[i].Events = c.Events
		for _, d := range by {
			describeGroup(&shown.Counts[i], d, c.Group)
		}
	}
	return shown
}

// describeGroup sets the member of one dimension.
func describeGroup(c *wire.GroupCount, d index.Dimension, g index.Group) {
	switch d {
	case index.Agent:
		c.Agent = &g.Agent
	case index.Tool:
		c.Tool = &g.Tool
	case index.Decision:
		decision := g.Decision.String()
		c.Decision = &decision
	case index.Rule:
		c.Rule = &g.Rule
	case index.Hour:
		c.Hour = &g.Hour
	}
}
