// Package people contains the commands of aps for users: signing in, deciding on approvals, reading the log, and uploading
// policies from a folder.
//
// Invariants:
//
//   - Passwords and tokens are never flags and never printed. A saved session is in a file that only its owner can read.
//   - A saved session is sent only to the service that issued it.
//   - Text of the service is made printable before it reaches a terminal.
package people

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/commandline"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// Commands are the commands for users.
type Commands struct {
	Login     LoginCommand     `cmd:"" foreground:"" help:"Sign in. The session is saved in your settings folder."`
	Logout    LogoutCommand    `cmd:"" help:"End the session of login."`
	Approvals ApprovalsCommand `cmd:"" help:"Decide on approvals in a terminal."`
	Policy    PolicyCommand    `cmd:"" help:"Upload policies from a folder to an organization."`
	Apply     ApplyCommand     `cmd:"" help:"Make an organization what the files of a folder declare: policies, agents, webhooks, members."`
	Events    EventsCommand    `cmd:"" help:"Read the log: list, show and follow events."`
	Acts      ActsCommand      `cmd:"" help:"Read the log by acts: what agents did, and what became of it."`
	Coverage  CoverageCommand  `cmd:"" help:"Compare a tool's own record of its calls with the acts in the log."`
	Traces    TracesCommand    `cmd:"" help:"Read the log by traces."`
	Evidence  EvidenceCommand  `cmd:"" help:"Download an evidence pack: proof of a range of events."`
	Erase     EraseCommand     `cmd:"" help:"Erase the payloads of an event, an agent, a trace or a principal."`
	Erasures  ErasuresCommand  `cmd:"" help:"Show the progress of erasures."`
	Retention RetentionCommand `cmd:"" help:"Show or change how long payloads are kept, and the legal hold."`
	Audit     AuditCommand     `cmd:"" help:"Print who changed what, from where, latest first."`
}

// Terminal is the input and the output of a command.
type Terminal struct {
	In   io.Reader
	Out  io.Writer
	Err  io.Writer // for questions
	JSON bool      // results as JSON, one value per line
}

// PrintLine prints one line. On a terminal its first word is coloured if it is a verdict.
func (t *Terminal) PrintLine(format string, args ...any) error {
	_, err := io.WriteString(t.Out, commandline.NewScreen(t.Out).Tint(fmt.Sprintf(format+"\n", args...)))
	return err
}

// PrintJSON prints v as one line of JSON.
func (t *Terminal) PrintJSON(v any) error {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err
	}
	return t.PrintLine("%s", textcheck.EscapeJSON(text))
}
