package acts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard"
)

// HookCommand is aps hook.
type HookCommand struct {
	Pre   preCommand   `cmd:"" help:"Before a tool call: ask whether it is allowed. Exit code 2 rejects the call."`
	Post  postCommand  `cmd:"" help:"After a tool call: record its result."`
	Close closeCommand `cmd:"" help:"After a session: record calls without a result as unknown."`
}

// refused is the exit code with which hooks refuse a tool call. Other codes let it continue.
const refused = 2

type preCommand struct {
	agentFlags
	Prefix string        `default:"" placeholder:"TEXT" help:"Text before the tool's name: claude."`
	Wait   time.Duration `default:"50s" help:"How long a call waits for approval."`
	Permit bool          `help:"Print allow, so that the coding agent does not ask its user."`
}

// Run implements the command.
func (c *preCommand) Run(ctx context.Context, s *Streams) error {
	if err := c.decideCall(ctx, s); err != nil {
		return &Exit{refused, describeRefusal("The tool call", err)}
	}
	if !c.Permit {
		return nil
	}
	return printPermission(s)
}

func printPermission(s *Streams) error {
	answer := map[string]any{"hookSpecificOutput": map[string]any{
		"hookEventName": "PreToolUse", "permissionDecision": "allow",
		"permissionDecisionReason": "The organization's policy allows the call.",
	}}
	text, err := json.Marshal(answer, json.Deterministic(true))
	if err == nil {
		_, err = fmt.Fprintf(s.Out, "%s\n", text)
	}
	if err != nil {
		return &Exit{refused, "The permission can't be printed."}
	}
	return nil
}

// decideCall gets permission for a call. If an undecided call is retried with the same arguments, it reuses its intent and
// approval.
func (c *preCommand) decideCall(ctx context.Context, s *Streams) error {
	call, err := readCall(s.In)
	if err != nil {
		return err
	}
	a, err := call.action(c.Prefix)
	if err != nil {
		return err
	}
	a.DigestOnly, a.Seen = c.DigestOnly, c.See
	folder, err := c.folder()
	if err != nil {
		return err
	}
	again := shortHash(call.Session, string(a.Tool), string(call.Input))
	e, known, err := folder.findEntry(againEntries, again)
	if err != nil {
		return err
	}
	if !known {
		e = entry{Journal: journalOf(call), Key: a.Key}
	}
	a.Key = e.Key
	if err := folder.keepEntry(callEntries, shortHash(call.Session, call.ID), e); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Wait)
	defer cancel()
	err = c.openCall(ctx, s, e.Journal, func(ctx context.Context, g *guard.Guard) error {
		_, err := g.Begin(ctx, a)
		return errors.Join(err, folder.settleDecision(g, e, again, err))
	})
	return err
}

// journalOf returns the name of a call's journal.
func journalOf(c hookCall) string {
	return hookPrefix + shortHash(c.Session) + "-" + shortHash(c.Session, c.ID)
}

// settleDecision keeps or removes the entry by which a retry of the call continues. A denied call leaves only events that
// are still to be sent.
func (f folder) settleDecision(g *guard.Guard, e entry, again string, err error) error {
	var denied *client.DeniedError
	var open *guard.NotDecidedError
	var waits *guard.ApprovalRequiredError
	switch {
	case errors.As(err, &open), errors.As(err, &waits):
		return f.keepEntry(againEntries, again, e)
	case errors.As(err, &denied):
		return errors.Join(f.removeEntry(againEntries, again), f.closeEnded(g, e.Journal))
	}
	return f.removeEntry(againEntries, again)
}

type postCommand struct {
	agentFlags
}

// Run implements the command.
func (c *postCommand) Run(ctx context.Context, s *Streams) error {
	call, err := readCall(s.In)
	if err != nil {
		return err
	}
	folder, err := c.folder()
	if err != nil {
		return err
	}
	name := shortHash(call.Session, call.ID)
	e, known, err := folder.findEntry(callEntries, name)
	if err != nil {
		return err
	}
	if !known {
		return &Exit{1, "aps: no call with this tool_use_id was asked about: aps hook pre has to run before it"}
	}
	sent := false
	err = c.openCall(ctx, s, e.Journal, func(ctx context.Context, g *guard.Guard) error {
		if err := g.End(ctx, e.Key, call.output(), call.failure()); err != nil {
			return err
		}
		sent = g.Journal.Queued() == 0
		return folder.closeEnded(g, e.Journal)
	})
	if err == nil {
		err = folder.removeEntry(callEntries, name)
	}
	if err != nil || !sent {
		return err
	}
	return c.sweep(ctx, s)
}

type closeCommand struct {
	agentFlags
}

// Run implements the command.
func (c *closeCommand) Run(ctx context.Context, s *Streams) error {
	call, err := readSession(s.In)
	if err != nil {
		return err
	}
	return errors.Join(c.recoverSession(ctx, s, call.Session), c.sweep(ctx, s))
}
