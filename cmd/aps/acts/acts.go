// Package acts contains the commands of aps that get permission for acts of other programs and record them: tool calls of
// coding agents, and processes.
//
// Invariants:
//
//   - A call or a process runs only after its intent is stored and allowed. On any failure it is refused, with an exit
//     code that the caller treats as a refusal.
//   - Each call has its own journal, so a call that waits for approval does not block other calls.
//   - A result that can't be sent stays on disk, and a later command sends it.
//   - A process that is run gets no variable with the prefix APS_ and can't read the ingest key from this process: the key
//     is not accepted as a flag, and the environment is protected (secret.ProtectProcess).
package acts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/cmd/aps/flags"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// Commands are the commands about acts.
type Commands struct {
	Hook HookCommand `cmd:"" foreground:"" help:"Get permission for tool calls of a coding agent and record them, from its hooks."`
	Wrap WrapCommand `cmd:"" foreground:"" help:"Run a program if the policy allows it, and record it."`
}

// Streams are the standard streams of the program.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Exit is the result of a command that chooses its exit code.
type Exit struct {
	Status  int
	Message string // for the user, or ""
}

// Error returns the message.
func (e *Exit) Error() string { return e.Message }

// agentFlags are the flags that all commands about acts have.
type agentFlags struct {
	flags.Service
	flags.Signer
	Principal  string   `env:"APS_PRINCIPAL" placeholder:"NAME" help:"For whom the agent acts. Default: the agent."`
	Journal    string   `env:"APS_JOURNAL" placeholder:"DIR" type:"path" help:"Folder of the journals."`
	DigestOnly bool     `help:"Keep the arguments out of the ledger, except their digest and the ones named by --see."`
	See        []string `placeholder:"NAME" help:"Arguments that policies see with --digest-only."`
}

// tries is the number of attempts of a request. A user or a model waits for the result.
const tries = 4

// openGuard returns the guard of one call, which has its own journal.
func (f *agentFlags) openGuard(s *Streams, signer *client.Signer, name string) (*guard.Guard, error) {
	service, err := f.NewRetryingClient(client.Retry{Attempts: tries}, flags.Subject{})
	if err != nil {
		return nil, err
	}
	folder, err := f.folder()
	if err != nil {
		return nil, err
	}
	journal, err := guard.OpenJournal(folder.journal(name), guard.JournalOptions{RefusedFile: folder.refusedFile()})
	if err != nil {
		return nil, err
	}
	return guard.New(guard.Config{Client: service, Signer: signer, Journal: journal, Principal: f.Principal,
		OnError: func(err error) {
			_, _ = fmt.Fprintln(s.Err, "aps: not sent yet:", textcheck.PrintableLines(err.Error()))
		},
	})
}

// folder returns the folder of the journals.
func (f *agentFlags) folder() (folder, error) {
	if f.Journal != "" {
		return folder(f.Journal), nil
	}
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("no folder for the journals: set --journal or APS_JOURNAL: %w", err)
		}
		state = filepath.Join(home, ".local", "state")
	}
	return folder(filepath.Join(state, "aps", "acts")), nil
}

// describeRefusal returns a sentence that explains why an act must not run. subject names the act.
func describeRefusal(subject string, err error) string {
	var denied *client.DeniedError
	var waits *guard.ApprovalRequiredError
	switch {
	case errors.As(err, &denied):
		return fmt.Sprintf("%s is not allowed: %s (event %s).", subject, denied.Reason, denied.Event)
	case errors.As(err, &waits):
		return fmt.Sprintf("%s waits for people's approval %s until %s. "+
			"Try again with the same arguments when it is given.",
			subject, waits.Approval.ID, waits.Approval.ExpiresAt)
	case errors.Is(err, guard.ErrJournalInUse):
		return subject + " is being decided for another request. Try again later."
	case errors.Is(err, guard.ErrBegun), errors.Is(err, guard.ErrInterrupted):
		return subject + " was begun before, and is not run again."
	}
	if undecided := (*guard.NotDecidedError)(nil); errors.As(err, &undecided) {
		err = undecided.Err
	}
	return fmt.Sprintf("%s is not decided, so it must not run: %s. %s", subject, err, guard.Advise(err))
}

// openCall opens the guard of a call, and passes it to use.
func (f *agentFlags) openCall(
	ctx context.Context, s *Streams, name string, use func(context.Context, *guard.Guard) error,
) error {
	signer, closeSigner, err := f.OpenSigner()
	if err != nil {
		return err
	}
	defer closeSigner()
	g, err := f.openGuard(s, signer, name)
	if err != nil {
		return err
	}
	err = use(ctx, g)
	return errors.Join(err, g.Journal.Close())
}
