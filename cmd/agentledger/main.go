// Agentledger is the transparency log service for AI agents, and its operator's commands:
//
//	serve           run the service, on the embedded store or on PostgreSQL
//	demo            show what the service does in a few seconds
//	init            create an organization without a running server
//	status          report the health of a server
//	doctor          check the machine and the settings of a service
//	backup          copy the embedded store, even while the server runs
//	restore         restore a backup
//	fsck            re-verify every ledger of a store, even while the server runs
//	compact         rewrite the store of a stopped server without the bytes of erased events
//	adopt           let a ledger without an anchor accept events again
//	rotate-log-key  rotate the key of a log under the same origin
//	ask-witnesses   have a server ask the witnesses of a log at once
//	reindex         have a server rebuild the index of a log's events
//	clock           show the clock of a server, and accept it
//	correct-clock   release a log that accepted events while a clock was ahead
//	succeed         let an organization whose log is frozen continue with another log
//	export          export organizations to a folder, for another store
//	import          import organizations of an export into a store
//	policy          check, test and replay policy documents
//	version         print the version
//	completion      print the script that completes commands and flags in a shell
//
// Exit code: 0 on success, 1 if status, doctor, fsck, backup, restore, export, import, policy, clock or the demo found
// something wrong, 3 if this program cannot use the store, 2 for every other error.
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
	"github.com/agentledger/agentledger/internal/commandline"
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
	Config kong.ConfigFlag `help:"JSON file with settings. Flags and environment variables take precedence." placeholder:"FILE" type:"existingfile" expected:"a JSON file with settings"`
	commandline.Common

	Serve         serveCommand         `cmd:"" foreground:"" help:"Run the service."`
	Demo          demoCommand          `cmd:"" foreground:"" help:"Show what the service does: a server, an agent's day, and an outsider who checks it."`
	Init          initCommand          `cmd:"" help:"Create an organization, its first agent and keys, without a running server."`
	Status        statusCommand        `cmd:"" help:"Report the health of the running server: totals, the worst ledgers, free space, backups, and what to do."`
	Doctor        doctor.Command       `cmd:"" help:"Check the machine and the settings of serve, before or while it runs, and report what to change."`
	Backup        backupCommand        `cmd:"" help:"Copy the embedded store of the running server (--server) or of a stopped one."`
	Restore       restoreCommand       `cmd:"" help:"Restore a backup to a data directory without a store."`
	Fsck          fsckCommand          `cmd:"" help:"Re-verify every ledger from its first event, in a snapshot of the running server (--server) or in the store of a stopped one."`
	Compact       compactCommand       `cmd:"" help:"Rewrite the store of a stopped server without erased texts."`
	Adopt         adoptCommand         `cmd:"" help:"Make a checkpoint the anchor of its ledger, so that it accepts events again. The server must be stopped."`
	RotateLogKey  rotateLogKeyCommand  `cmd:"" help:"Rotate the key of a log under the same origin, through the running server (--server) or in the store of a stopped one."`
	AskWitnesses  askWitnessesCommand  `cmd:"" help:"Have the running server ask the witnesses of a log at once, including those that refused it."`
	Reindex       reindexCommand       `cmd:"" help:"Rebuild the index of a log's events, in the running server."`
	Clock         clockCommand         `cmd:"" help:"Show the clock of the running server, or accept it (--accept)."`
	CorrectClock  correctClockCommand  `cmd:"" help:"Release a log that accepted events while a clock was ahead, through the running server (--server) or in the store of a stopped one."`
	AcceptRecords acceptRecordsCommand `cmd:"" help:"Release an organization that is held because its records contradict its log (server stopped). An event of the log accepts the remaining contradictions."`
	Succeed       succeedCommand       `cmd:"" help:"Let an organization whose log is frozen continue with another log. The server must be stopped."`
	Export        exportCommand        `cmd:"" help:"Export one or all organizations to a folder, to move them to another store, from a snapshot of the running server (--server) or from the store of a stopped one."`
	Import        importCommand        `cmd:"" help:"Import organizations of an export into a store. Its server must be stopped."`
	Policy        policyCommand        `cmd:"" help:"Check, test and replay policy documents, without a server."`
	Version       versionCommand       `cmd:"" help:"Print the version, as the flag --version does."`
}

// terminal is where a command writes.
type terminal struct {
	stdout, stderr io.Writer
}

// printError prints the error of a command.
func (t terminal) printError(err error) { t.printProblem("agentledger: " + err.Error()) }

// printProblem prints a line that is not a result. It escapes control characters, because parts of the line may come from
// elsewhere.
func (t terminal) printProblem(problem string) {
	fmt.Fprintln(t.stderr, textcheck.PrintableLines(problem))
}

// errFound means that the command completed and found something wrong.
var errFound = errors.New("found something wrong")

const (
	exitFound = 1
	exitError = exitFailed
)

// runProgram runs one command line and returns the exit code.
func runProgram(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var c commands
	exited := -1
	stdout = commandline.Tinted(stdout)
	parser, err := kong.New(&c, append(config.ParserOptions(),
		kong.Name("agentledger"), kong.Description("A transparency log service for AI agents."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exited = code }),
	)...)
	if err != nil {
		fmt.Fprintln(stderr, "agentledger:", err)
		return exitError
	}
	parsed, err := commandline.Parse(parser, args)
	if exited >= 0 { // kong has printed the help or the version
		return exited
	}
	if err == nil {
		config.WarnOfVariables(parsed)
		err = runCommand(ctx, parsed, stdout, stderr)
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

// runCommand runs the command that was parsed, and shows its progress.
func runCommand(ctx context.Context, parsed *kong.Context, stdout, stderr io.Writer) error {
	ctx, progress := commandline.ShowCommand(ctx, stderr, parsed)
	defer progress.End()
	stdout, stderr = progress.Writer(stdout), progress.Writer(stderr)
	parsed.BindTo(ctx, (*context.Context)(nil))
	parsed.BindTo(stdout, (*io.Writer)(nil))
	parsed.Bind(terminal{stdout: stdout, stderr: stderr})
	return parsed.Run()
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

// AfterApply is called by kong.
func (o *offline) AfterApply(k *kong.Kong) error { return o.UseUserFolder(k.Stderr) }
