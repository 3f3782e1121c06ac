package main

import (
	"context"
	"io"

	"github.com/alecthomas/kong"

	"github.com/agentledger/agentledger/cmd/aps/acts"
	"github.com/agentledger/agentledger/cmd/aps/mcp"
	"github.com/agentledger/agentledger/cmd/aps/people"
	"github.com/agentledger/agentledger/internal/commandline"
)

// program is the command line.
type program struct {
	JSON bool `name:"json" help:"Print results as JSON, one value per line."`
	commandline.Common

	Keygen   keygenCommand   `cmd:"" help:"Generate an Ed25519 key, or the proof that registers it."`
	Sign     signCommand     `cmd:"" foreground:"" help:"Complete and sign events, and print the envelopes."`
	Signer   signerCommand   `cmd:"" foreground:"" help:"Hold a key for the flag --signer of commands that run as another user."`
	Send     sendCommand     `cmd:"" help:"Send events; unsigned ones are completed and signed first."`
	Evaluate evaluateCommand `cmd:"" help:"Evaluate the policy for a tool call without making the call."`
	Replay   replayCommand   `cmd:"" help:"Send a file of recorded events. A repeated run sends nothing twice."`
	Verify   verifyCommand   `cmd:"" help:"Verify a bundle, a tlog-proof or a COSE receipt offline."`
	Monitor  monitorCommand  `cmd:"" foreground:"" help:"Follow a public log and detect whether it shows two histories."`
	people.Commands
	Acts    acts.Commands   `embed:""`
	MCP     mcp.Command     `cmd:"" foreground:"" name:"mcp" help:"Gateway in front of MCP servers: it gets a decision for each tool call and records it."`
	Grant   grantCommand    `cmd:"" help:"Grants by approvers, for tools that check them."`
	Did     didCommand      `cmd:"" help:"Print DID documents."`
	Release releaseCommands `embed:""`
}

// streams are the input and the outputs of a command.
type streams struct {
	in       io.Reader
	out, err io.Writer
	json     bool
}

// runProgram runs one command line, without the program's name. printError prints its error and returns the exit code.
func runProgram(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	var p program
	helped := false
	parser, err := newParser(&p, kong.Writers(stdout, stderr), kong.Exit(func(int) { helped = true }))
	if err != nil {
		return err
	}
	command, err := commandline.Parse(parser, args)
	if helped { // kong has printed the help, and parses the rest of the line
		return nil
	}
	if err != nil {
		return err
	}
	ctx, progress := commandline.ShowCommand(ctx, stderr, command)
	defer progress.End()
	stdout, stderr = progress.Writer(stdout), progress.Writer(stderr)
	command.BindTo(ctx, (*context.Context)(nil))
	return command.Run(
		&streams{in: stdin, out: stdout, err: stderr, json: p.JSON},
		&people.Terminal{In: stdin, Out: stdout, Err: stderr, JSON: p.JSON},
		&acts.Streams{In: stdin, Out: stdout, Err: stderr},
	)
}

func newParser(p *program, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(p, append(append(commandline.Forms(), options...),
		kong.Name("aps"),
		kong.Description("Agents, auditors and monitors of an agentledger service."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)...)
}
