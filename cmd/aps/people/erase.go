package people

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/commandline"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// EraseCommand is aps erase.
type EraseCommand struct {
	personFlags
	Event      string `arg:"" optional:"" help:"Event id, log index or event hash." type:"event"`
	Agent      string `help:"All events of this agent, instead of one event." type:"agent"`
	Trace      string `help:"All events of this trace." type:"trace"`
	Principal  string `help:"All events of this actor_principal."`
	OnBehalfOf string `help:"All events whose on_behalf_of has this subject."`
	Issuer     string `help:"With --on-behalf-of: only those whose subject this issuer names."`
	From       string `help:"The first event: a UTC time such as 2026-01-31T12:00:00Z, or a log index." type:"position"`
	To         string `help:"The event after the last one: a UTC time, or a log index." type:"position"`
	Reason     string `required:"" help:"A code, such as data_subject_request. The error for an unknown code lists all." type:"word" expected:"a reason code, such as data_subject_request"`
	Wait       bool   `help:"Wait until the erasure has completed, and print the result."`
}

// Run implements the command.
func (c *EraseCommand) Run(ctx context.Context, t *Terminal) error {
	body := map[string]string{"reason": c.Reason}
	for name, value := range map[string]string{
		"agent_id": c.Agent, "trace_id": c.Trace, "principal": c.Principal, "on_behalf_of": c.OnBehalfOf, "issuer": c.Issuer, "from": c.From, "to": c.To,
	} {
		if value != "" {
			body[name] = value
		}
	}
	path := "/erasures"
	switch {
	case c.Event != "" && len(body) > 1:
		return errors.New("either an event or flags are allowed")
	case c.Event != "":
		path = "/events/" + url.PathEscape(c.Event) + "/erase"
	}
	p, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	var made struct {
		ID string `json:"erasure_id"`
	}
	if err := p.callConsole(ctx, http.MethodPost, path, body, &made); err != nil {
		return err
	}
	if c.Wait {
		return p.awaitErasure(ctx, t, made.ID)
	}
	if t.JSON {
		return t.PrintJSON(made)
	}
	return t.PrintLine("%s", textcheck.Printable(made.ID))
}

// erasurePause is how often a waiting command polls an erasure.
const erasurePause = time.Second

// awaitErasure waits until an erasure has ended or is held, and prints it.
func (s *session) awaitErasure(ctx context.Context, t *Terminal, name string) error {
	for {
		found, e, err := s.findErasure(ctx, name)
		if err != nil {
			return err
		}
		if e.State == "done" || e.State == "held" {
			return printErasure(t, newErasureTable(t), found)
		}
		if err := syncs.Sleep(ctx, erasurePause); err != nil {
			return err
		}
	}
}

// ErasuresCommand is aps erasures.
type ErasuresCommand struct {
	List erasuresListCommand `cmd:"" help:"Print erasures, latest first."`
	Show erasuresShowCommand `cmd:"" help:"Print one erasure as JSON."`
}

// listedErasure is an erasure as the console lists it.
type listedErasure struct {
	ID     string     `json:"erasure_id"`
	State  string     `json:"state"`
	Reason string     `json:"reason"`
	By     string     `json:"by"`
	Asked  id.Instant `json:"asked_at"`
	Counts struct {
		Erased     uint64 `json:"erased"`
		Already    uint64 `json:"already"`
		Unexamined uint64 `json:"unexamined"`
		Approvals  uint64 `json:"approvals"`
	} `json:"counts"`
}

func newErasureTable(t *Terminal) *commandline.Table {
	return commandline.NewTable(t.Out, "ERASURE", "REQUESTED", "STATE", "REASON", "BY", "ENVELOPES", "APPROVALS", "ERASED BEFORE", "TO EXAMINE")
}

// printErasure prints an erasure on one line.
func printErasure(t *Terminal, table *commandline.Table, text jsontext.Value) error {
	if t.JSON {
		return t.PrintJSON(text)
	}
	var e listedErasure
	if err := json.Unmarshal(text, &e); err != nil {
		return err
	}
	return table.PrintRow("%s  %s  %-7s  %s  by %s  %s and %s erased, %d gone before, %s to look at",
		textcheck.Printable(e.ID), e.Asked, textcheck.Printable(e.State), textcheck.Printable(e.Reason),
		textcheck.Printable(e.By), textcheck.Count(e.Counts.Erased, "envelope"), textcheck.Count(e.Counts.Approvals, "approval"),
		e.Counts.Already, textcheck.Count(e.Counts.Unexamined, "event"))
}

type erasuresListCommand struct {
	personFlags
	Limit int `help:"Maximum number to print; 0 prints all." default:"100"`
}

// Run implements the command.
func (c *erasuresListCommand) Run(ctx context.Context, t *Terminal) error {
	p, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	table := newErasureTable(t)
	return p.readPages(ctx, "/erasures", make(url.Values), c.Limit, func(text jsontext.Value) error {
		return printErasure(t, table, text)
	})
}

type erasuresShowCommand struct {
	personFlags
	ID string `arg:"" help:"Erasure id." type:"id" expected:"an erasure ID, such as ers_…"`
}

// Run implements the command.
func (c *erasuresShowCommand) Run(ctx context.Context, t *Terminal) error {
	p, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	found, _, err := p.findErasure(ctx, c.ID)
	if err != nil {
		return err
	}
	return printDocument(t, found)
}

func (s *session) findErasure(ctx context.Context, name string) (text jsontext.Value, e listedErasure, err error) {
	if err = s.callConsole(ctx, http.MethodGet, "/erasures/"+url.PathEscape(name), nil, &text); err == nil {
		err = json.Unmarshal(text, &e)
	}
	return text, e, err
}

// RetentionCommand is aps retention.
type RetentionCommand struct {
	personFlags
	Days string `help:"Erase envelopes that are older than this number of days; 0 keeps them permanently." type:"number" expected:"a whole number of days"`
	Hold string `enum:",on,off" default:"" help:"Legal hold: while it is on, nothing is erased."`
}

// Run implements the command.
func (c *RetentionCommand) Run(ctx context.Context, t *Terminal) error {
	body := map[string]any{}
	if c.Days != "" {
		days, err := strconv.Atoi(c.Days)
		if err != nil {
			return errors.New("--days must be a whole number")
		}
		body["retention_days"] = days
	}
	if c.Hold != "" {
		body["legal_hold"] = c.Hold == "on"
	}
	p, err := c.openSession(ctx, t)
	if err != nil {
		return err
	}
	var stored struct {
		Days int  `json:"retention_days"`
		Hold bool `json:"legal_hold"`
	}
	if len(body) == 0 {
		err = p.callConsole(ctx, http.MethodGet, "/organization", nil, &stored)
	} else {
		err = p.callConsole(ctx, http.MethodPatch, "/organization", body, &stored)
	}
	if err != nil {
		return err
	}
	if t.JSON {
		return t.PrintJSON(stored)
	}
	days := "for ever"
	if stored.Days > 0 {
		days = textcheck.Count(stored.Days, "day")
	}
	return t.PrintLine("envelopes are kept %s, legal hold: %v", days, stored.Hold)
}
