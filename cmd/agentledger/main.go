// Agentledger is the transparency log service for AI agents, and its operator's commands:
//
//	serve           run the service, on the embedded store or on PostgreSQL
//	demo            see the main job in a few seconds
//	init            make an organization without a running server
//	status          say whether a server is well
//	doctor          look at the machine and the settings of a service
//	backup          copy the embedded store, also while the server runs
//	restore         bring a backup back
//	fsck            re-verify every ledger of a store, also while the server runs
//	compact         rewrite a stopped server's store without the bytes of erased events
//	adopt           let a ledger without an anchor take events again
//	rotate-log-key  give a log another key under the same origin
//	ask-witnesses   have a server ask the witnesses of a log at once
//	reindex         have a server make the index of a log's events anew
//	clock           show the clock of a server, and accept it
//	correct-clock   let a log go on that took events while a clock was ahead
//	succeed         let an organization whose log is frozen go on with another one
//	export          write organizations into a folder, for another store
//	import          bring organizations of an export into a store
//	policy          check, test and replay policy documents
//	version         print the version
//
// Exit status: 0 when all went well, 1 when status, doctor, fsck, backup, restore, export, import, policy, clock or the demo
// found something wrong, 3 when the store does not take this program, 2 for everything else.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/agentledger/agentledger/cmd/agentledger/doctor"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/programversion"
	"github.com/agentledger/agentledger/internal/textcheck"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second signal ends the process at once
	}()
	os.Exit(runProgram(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// commands is the command line.
type commands struct {
	Config kong.ConfigFlag `help:"JSON file with settings; flags and the environment win over it." placeholder:"FILE"`

	Serve         serveCommand         `cmd:"" help:"Run the service."`
	Demo          demoCommand          `cmd:"" help:"See the main job: a server, an agent's day, and an outsider who checks it."`
	Init          initCommand          `cmd:"" help:"Make an organization, its first agent and keys, without a running server."`
	Status        statusCommand        `cmd:"" help:"Say whether the server that runs is well: totals, the worst ledgers, room, backups, and what to do."`
	Doctor        doctor.Command       `cmd:"" help:"Look at the machine and the settings of serve, before it or beside it, and say what to change."`
	Backup        backupCommand        `cmd:"" help:"Copy the embedded store: of the server that runs (--server), or of a stopped one."`
	Restore       restoreCommand       `cmd:"" help:"Bring a backup back into a data directory without a store."`
	Fsck          fsckCommand          `cmd:"" help:"Re-verify every ledger from its first event: of a snapshot of the server that runs (--server), or of a stopped one's store."`
	Compact       compactCommand       `cmd:"" help:"Rewrite a stopped server's store without erased texts."`
	Adopt         adoptCommand         `cmd:"" help:"Make a checkpoint the anchor of its ledger, so that it takes events again. The server must be stopped."`
	RotateLogKey  rotateLogKeyCommand  `cmd:"" help:"Give a log another key under the same origin: through the server that runs (--server), or in the store of a stopped one."`
	AskWitnesses  askWitnessesCommand  `cmd:"" help:"Have the server that runs ask the witnesses of a log at once, also those that refused it."`
	Reindex       reindexCommand       `cmd:"" help:"Make the index of a log's events anew, in the server that runs."`
	Clock         clockCommand         `cmd:"" help:"Show the clock of the server that runs, or accept it (--accept)."`
	CorrectClock  correctClockCommand  `cmd:"" help:"Let a log go on that took events while a clock was ahead: through the server that runs (--server), or in the store of a stopped one."`
	AcceptRecords acceptRecordsCommand `cmd:"" help:"Let an organization go on that is held because its records contradict its log (server stopped). Contradictions that are left are accepted by an event of the log."`
	Succeed       succeedCommand       `cmd:"" help:"Let an organization whose log is frozen go on with another log. The server must be stopped."`
	Export        exportCommand        `cmd:"" help:"Write one or all organizations into a folder, to move them to another store: of a snapshot of the server that runs (--server), or of a stopped one's store."`
	Import        importCommand        `cmd:"" help:"Bring organizations of an export into a store. Its server must be stopped."`
	Policy        policyCommand        `cmd:"" help:"Check, test and replay policy documents, without a server."`
	Version       versionCommand       `cmd:"" help:"Say what this is."`
}

// terminal is where a command writes.
type terminal struct {
	stdout, stderr io.Writer
}

// printError prints the error of a command.
func (t terminal) printError(err error) { t.printProblem("agentledger: " + err.Error()) }

// printProblem prints a line that is no result. Texts from elsewhere in it can't control the terminal.
func (t terminal) printProblem(problem string) {
	fmt.Fprintln(t.stderr, textcheck.PrintableLines(problem))
}

// errFound: the command did its work and found something wrong.
var errFound = errors.New("found something wrong")

const (
	exitFound = 1
	exitError = exitFailed
)

// runProgram is the program as a value, so that tests run it too.
func runProgram(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var c commands
	exited := -1
	parser, err := kong.New(&c, append(config.ParserOptions(),
		kong.Name("agentledger"), kong.Description("A transparency log service for AI agents."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exited = code }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(terminal{stdout: stdout, stderr: stderr}),
		kong.BindTo(stdout, (*io.Writer)(nil)),
	)...)
	if err != nil {
		fmt.Fprintln(stderr, "agentledger:", err)
		return exitError
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 { // help was asked for and written
		return exited
	}
	if err == nil {
		config.WarnOfVariables(parsed)
		err = parsed.Run()
	} else {
		err = config.ExplainError(err)
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errFound), errors.Is(err, errPolicyFound), errors.Is(err, doctor.ErrFound):
		return exitFound
	}
	terminal{stdout, stderr}.printError(err)
	return exitStatus(err)
}

type versionCommand struct{}

func (versionCommand) Run(c terminal) error {
	_, err := fmt.Fprintln(c.stdout, "agentledger", programversion.Read())
	return err
}

// offline are the settings of commands that work on a stopped server's store.
type offline struct {
	config.Store
	config.Logging
	config.Tuning `kong:"-"`
}
