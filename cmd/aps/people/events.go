package people

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/commandline"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/internal/wire"
)

// EventsCommand is aps events.
type EventsCommand struct {
	List eventsListCommand `cmd:"" help:"Print events of the log, latest first."`
	Show eventsShowCommand `cmd:"" help:"Print one event with its documents and its proof, as JSON."`
	Tail eventsTailCommand `cmd:"" foreground:"" help:"Print new events as they arrive, until interrupted."`
}

// eventFilter selects events.
type eventFilter struct {
	Agent      string `help:"Only those of this agent." type:"agent"`
	Tool       string `help:"Only those of this tool, or of tools that match this pattern, such as acme.**." type:"tools"`
	Kind       string `help:"Only those of this action_kind." type:"kind"`
	Decision   string `help:"Only those with this effective decision." enum:",allow,allow_with_obligation,deny" default:""`
	Declared   string `help:"Only those with this declared decision." enum:",allow,allow_with_obligation,deny" default:""`
	Trace      string `help:"Only those of this trace." type:"trace"`
	Principal  string `help:"Only those of this actor_principal."`
	OnBehalfOf string `help:"Only those whose on_behalf_of has this subject."`
	Issuer     string `help:"With --on-behalf-of: only those whose subject this issuer names."`
	Signer     string `help:"Only those signed by this kind of key: agent, bridge or system." enum:",agent,bridge,system" default:""`
}

// values returns the parameters of a filter.
func (f *eventFilter) values() url.Values {
	values := make(url.Values)
	for name, value := range map[string]string{
		"agent_id": f.Agent, "tool": f.Tool, "action_kind": f.Kind, "decision": f.Decision, "declared": f.Declared,
		"trace_id": f.Trace, "principal": f.Principal, "on_behalf_of": f.OnBehalfOf, "issuer": f.Issuer, "signer": f.Signer,
	} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return values
}

// rangeFlags bound a list, and its length.
type rangeFlags struct {
	From  string `help:"The first event: a UTC time such as 2026-01-31T12:00:00Z, or a log index." type:"position"`
	To    string `help:"The event after the last one: a UTC time, or a log index." type:"position"`
	Limit int    `help:"Maximum number to print; 0 prints all." default:"100"`
}

func (f *rangeFlags) addTo(values url.Values) {
	for name, value := range map[string]string{"from": f.From, "to": f.To} {
		if value != "" {
			values.Set(name, value)
		}
	}
}

// eventPage is a page of a list. The items are kept undecoded, for JSON.
type eventPage struct {
	Events []jsontext.Value `json:"events"`
	Next   *string          `json:"next"`
}

func newEventTable(t *Terminal) *commandline.Table {
	return commandline.NewTable(t.Out, "INDEX", "RECEIVED", "DECISION", "AGENT", "KIND", "TOOL", "ON BEHALF OF", "EVENT")
}

// printEvent prints an event of a list.
func printEvent(t *Terminal, table *commandline.Table, text jsontext.Value) (wire.Event, error) {
	var e wire.Event
	if err := json.Unmarshal(text, &e); err != nil {
		return e, err
	}
	if t.JSON {
		return e, t.PrintJSON(text)
	}
	tool := cmp.Or(string(e.Tool), "-")
	return e, table.PrintRow("%8d  %s  %-21s  %s  %s  %s  %s  %s", e.Index, e.ReceivedAt, textcheck.Printable(e.Effective),
		textcheck.Printable(string(e.Agent)), textcheck.Printable(e.Kind), textcheck.Printable(tool),
		describeSubject(e.OnBehalfOf), textcheck.Printable(string(e.ID)))
}

// describeSubject returns a subject with its standing, or "-" if of is nil.
func describeSubject(of *wire.OnBehalfOf) string {
	switch {
	case of == nil:
		return "-"
	case of.Verified:
		return textcheck.Printable(of.Subject) + " (verified)"
	}
	return textcheck.Printable(of.Subject) + " (claimed)"
}

// maxPage is the maximum number of items per call.
const maxPage = 1000

type eventsListCommand struct {
	personFlags
	eventFilter
	rangeFlags
	formatFlags
	Search string `short:"q" help:"Only those with this text in their stored texts."`
	Oldest bool   `help:"Oldest first."`
}

// Run implements the command.
func (c *eventsListCommand) Run(ctx context.Context, t *Terminal) error {
	p, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	values := c.values()
	c.addTo(values)
	if c.Search != "" {
		values.Set("q", c.Search)
	}
	if c.Oldest {
		values.Set("order", "oldest")
	}
	if format := c.format(); format != "" {
		return p.printRows(ctx, t.Out, "/events", values, format, c.Limit)
	}
	table := newEventTable(t)
	return p.readPages(ctx, "/events", values, c.Limit, func(text jsontext.Value) error {
		_, err := printEvent(t, table, text)
		return err
	})
}

// searchWait is how long one call searches for a text, in seconds. Its results are printed after it.
const searchWait = "2"

// readPages calls visit with the items of a list, at most limit items, or all if limit is 0. A text search continues until there are as many,
// or until it is interrupted. The error then contains the flag with which it continues.
func (s *session) readPages(ctx context.Context, path string, values url.Values, limit int,
	visit func(jsontext.Value) error) error {
	var looked *wire.LookedTo
	if values.Has("q") {
		values.Set("wait", searchWait)
	}
	for left := limit; limit == 0 || left > 0; {
		values.Set("limit", strconv.Itoa(maxPage))
		if limit > 0 {
			values.Set("limit", strconv.Itoa(min(left, maxPage)))
		}
		var page struct {
			eventPage
			Traces   []jsontext.Value `json:"traces"`
			Erasures []jsontext.Value `json:"erasures"`
			Acts     []jsontext.Value `json:"acts"`
			wire.Searched
		}
		if err := s.callConsole(ctx, http.MethodGet, path+"?"+values.Encode(), nil, &page); err != nil {
			return describeStop(ctx, err, looked, values)
		}
		if page.LookedTo != nil {
			looked = page.LookedTo
			syncs.BeginStep(ctx, "searched to "+looked.ReceivedAt.String(), "")
		}
		items := slices.Concat(page.Events, page.Traces, page.Erasures, page.Acts)
		for _, text := range items {
			if err := visit(text); err != nil {
				return err
			}
		}
		if left -= len(items); page.Next == nil {
			return nil
		}
		values.Set("after", *page.Next)
	}
	return nil
}

// describeStop adds to the error of an interrupted search how to continue it. looked may be nil.
func describeStop(ctx context.Context, err error, looked *wire.LookedTo, values url.Values) error {
	if ctx.Err() == nil || looked == nil {
		return err
	}
	flag := fmt.Sprint("--to ", looked.Index)
	if values.Get("order") == "oldest" {
		flag = fmt.Sprint("--from ", looked.Index+1)
	}
	return fmt.Errorf("searched to event %d of %s; continue with %s: %w", looked.Index, looked.ReceivedAt, flag, err)
}

type eventsShowCommand struct {
	personFlags
	Event string `arg:"" help:"Event id, log index or event hash." type:"event"`
}

// Run implements the command.
func (c *eventsShowCommand) Run(ctx context.Context, t *Terminal) error {
	p, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	var found jsontext.Value
	if err := p.callConsole(ctx, http.MethodGet, "/events/"+url.PathEscape(c.Event), nil, &found); err != nil {
		return err
	}
	return printDocument(t, found)
}

// printDocument prints JSON, without --json with a line for each member.
func printDocument(t *Terminal, text jsontext.Value) error {
	if !t.JSON {
		if err := text.Indent(jsontext.WithIndent("  ")); err != nil {
			return err
		}
	}
	return t.PrintLine("%s", textcheck.EscapeJSON(text))
}

// tailWait is how long one call waits for new events, in seconds. It is shorter than callTime.
const tailWait = "20"

type eventsTailCommand struct {
	personFlags
	eventFilter
	After string `help:"Log index of the last known event. Default: the latest one." type:"number" expected:"a log index"`
	Count int    `help:"Exit after this number of events; 0 means never." default:"0"`
}

// Run implements the command.
func (c *eventsTailCommand) Run(ctx context.Context, t *Terminal) error {
	p, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	values := c.values()
	values.Set("order", "oldest")
	values.Set("wait", tailWait)
	if values.Set("after", c.After); c.After == "" {
		if err := p.beginTail(ctx, values); err != nil {
			return err
		}
	}
	table := newEventTable(t)
	for printed := 0; c.Count == 0 || printed < c.Count; {
		var page eventPage
		if err := p.callConsole(ctx, http.MethodGet, "/events?"+values.Encode(), nil, &page); err != nil {
			return err
		}
		if page.Next != nil {
			values.Set("after", *page.Next)
		}
		for _, text := range page.Events {
			e, err := printEvent(t, table, text)
			if err != nil {
				return err
			}
			if page.Next == nil {
				values.Set("after", strconv.FormatUint(uint64(e.Index), 10))
			}
			if printed++; printed == c.Count {
				return nil
			}
		}
	}
	return nil
}

// beginTail starts after the latest event.
func (s *session) beginTail(ctx context.Context, values url.Values) error {
	var newest wire.Events
	if err := s.callConsole(ctx, http.MethodGet, "/events?limit=1", nil, &newest); err != nil {
		return err
	}
	if values.Del("after"); newest.IndexedTo > 0 {
		values.Set("after", strconv.FormatUint(uint64(newest.IndexedTo-1), 10))
	}
	return nil
}
