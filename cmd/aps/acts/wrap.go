package acts

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/cmd/aps/flags"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// WrapCommand is aps wrap.
type WrapCommand struct {
	agentFlags
	Tool    id.Tool       `default:"process.run" placeholder:"NAME" help:"The tool that policies see." type:"tool"`
	Key     string        `placeholder:"TEXT" help:"Name of this run. A program runs at most once under a name."`
	Trace   id.Trace      `placeholder:"ID" help:"Trace of the events." type:"trace"`
	Wait    time.Duration `default:"1h" help:"How long to wait for approval."`
	File    []string      `placeholder:"FILE" help:"Record the SHA-256 of this file after the run."`
	Command []string      `arg:"" passthrough:"" help:"The program and its arguments."`
}

// Exit codes for programs that did not run, as shells use them.
const (
	notPermitted = 126
	notFound     = 127
)

// Run implements the command.
func (c *WrapCommand) Run(ctx context.Context, s *Streams) error {
	if err := flags.CheckHidden(c.Token); err != nil {
		return err
	}
	if c.Command[0] == "--" {
		c.Command = c.Command[1:]
	}
	if len(c.Command) == 0 {
		return errors.New("no program: aps wrap -- COMMAND")
	}
	path, err := exec.LookPath(c.Command[0])
	if err != nil {
		return &Exit{notFound, fmt.Sprintf("aps: %v", err)}
	}
	name := wrapPrefix + shortHash(rand.Text())
	if c.Key != "" {
		name = oncePrefix + shortHash(c.Key)
	}
	p := &process{path: path, command: c.Command, streams: s, files: c.File}
	err = c.openCall(ctx, s, name, func(ctx context.Context, g *guard.Guard) error {
		return c.runOnce(ctx, g, p, name)
	})
	if before := (*Exit)(nil); !p.began && errors.As(err, &before) {
		return before
	}
	if !p.began {
		return &Exit{notPermitted, "aps: " + describeRefusal("The program", err)}
	}
	if err := errors.Join(err, c.sweep(context.WithoutCancel(ctx), s)); err != nil {
		_, _ = fmt.Fprintln(s.Err, "aps: the end of the program is not recorded yet:", textcheck.PrintableLines(err.Error()))
	}
	return &Exit{Status: p.status}
}

// runOnce runs the program if it is allowed. ctx and the time limit end the wait for approval, but neither the program nor
// the recording of its result.
func (c *WrapCommand) runOnce(ctx context.Context, g *guard.Guard, p *process, name string) error {
	folder, err := c.folder()
	if err != nil {
		return err
	}
	waiting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	keep := context.AfterFunc(ctx, cancel)
	limit := time.AfterFunc(c.Wait, cancel)
	defer limit.Stop()
	a := guard.Action{Key: c.Key, Tool: c.Tool, Trace: c.Trace, DigestOnly: c.DigestOnly, Seen: c.See,
		Payload: map[string]any{"program": c.Command[0], "arguments": c.Command[1:]},
	}
	var failed error
	o, err := g.Run(waiting, a, func(context.Context, guard.Permit) (any, error) {
		keep()
		limit.Stop()
		var members map[string]any
		members, failed = p.run()
		return guard.Disclosed{Output: members, Members: members}, failed
	})
	if !p.began {
		err = endOfBefore(o, err)
	} else if failed != nil && errors.Is(err, failed) && err.Error() == failed.Error() {
		err = nil // the program failed, which is recorded
	}
	if isUndecided(err) {
		return err
	}
	return errors.Join(err, folder.closeEnded(g, name))
}

// isUndecided reports whether the same run may continue later.
func isUndecided(err error) bool {
	var open *guard.NotDecidedError
	var waits *guard.ApprovalRequiredError
	return errors.As(err, &open) || errors.As(err, &waits)
}

// endOfBefore returns the result of a program that ran earlier under the same key.
func endOfBefore(o guard.Outcome, err error) error {
	const message = "aps: the program was run before under this key, and is not run again"
	if err == nil && o.Repeated {
		return &Exit{0, message}
	}
	var failed *guard.FailedError
	if !errors.As(err, &failed) {
		return err
	}
	status := 1
	_, _ = fmt.Sscanf(failed.Failure, exitFormat, &status) // another failure has exit code 1
	return &Exit{status, message}
}
