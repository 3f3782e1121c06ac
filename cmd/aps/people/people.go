// Package people is the commands of aps for people: signing in, deciding on approvals, reading the
// log, and bringing policies from a folder into an organization.
//
// Invariants:
//
//   - Passwords and tokens are never flags and never printed. A session that is kept lies
//     in a file that only its owner may read.
//   - A kept session is sent to the service that gave it, and to no other.
//   - Text of the service is made printable before it reaches a terminal.
package people

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/textcheck"
)

// Commands are the commands for people.
type Commands struct {
	Login     LoginCommand     `cmd:"" help:"Sign in: the session is kept in your folder of settings."`
	Logout    LogoutCommand    `cmd:"" help:"End the session of login."`
	Approvals ApprovalsCommand `cmd:"" help:"Decide on what agents ask for, in a terminal."`
	Policy    PolicyCommand    `cmd:"" help:"Bring policies from a folder into an organization."`
	Events    EventsCommand    `cmd:"" help:"Read the log: list, show and follow events."`
	Traces    TracesCommand    `cmd:"" help:"Read the log by traces."`
	Evidence  EvidenceCommand  `cmd:"" help:"Download an evidence pack: proof of a range of events."`
	Erase     EraseCommand     `cmd:"" help:"Erase the payloads of an event, an agent, a trace or a principal."`
	Erasures  ErasuresCommand  `cmd:"" help:"Tell how far erasures have come."`
	Retention RetentionCommand `cmd:"" help:"Show or change how long payloads are kept, and the legal hold."`
	Audit     AuditCommand     `cmd:"" help:"Print who changed what, from where, the newest first."`
}

// Terminal is the input and the output of a command.
type Terminal struct {
	In   io.Reader
	Out  io.Writer
	JSON bool // results as JSON, one value a line
}

// PrintLine prints one line.
func (t *Terminal) PrintLine(format string, args ...any) error {
	_, err := fmt.Fprintf(t.Out, format+"\n", args...)
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
