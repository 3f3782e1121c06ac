package main

import (
	"context"
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"github.com/agentledger/agentledger/cmd/aps/acts"
	"github.com/agentledger/agentledger/cmd/aps/flags"
	"github.com/agentledger/agentledger/cmd/aps/mcp"
	"github.com/agentledger/agentledger/cmd/aps/people"
)

// program is the command line.
type program struct {
	JSON bool `name:"json" help:"Print results as JSON, one value a line."`

	Keygen   keygenCommand   `cmd:"" help:"Make an Ed25519 key, or the proof with which it is registered."`
	Sign     signCommand     `cmd:"" help:"Complete and sign events, and print the envelopes."`
	Signer   signerCommand   `cmd:"" help:"Hold a key for --signer of other commands, which run as another user."`
	Send     sendCommand     `cmd:"" help:"Send events; unsigned ones are completed and signed first."`
	Evaluate evaluateCommand `cmd:"" help:"Ask what the policy says of a tool call, without making it."`
	Replay   replayCommand   `cmd:"" help:"Send a file of recorded events. Running it again sends nothing twice."`
	Verify   verifyCommand   `cmd:"" help:"Verify a bundle or a tlog-proof offline."`
	Monitor  monitorCommand  `cmd:"" help:"Follow a public log and find out when it shows two histories."`
	people.Commands
	Acts    acts.Commands   `embed:""`
	MCP     mcp.Command     `cmd:"" name:"mcp" help:"Gateway in front of MCP servers: each tool call is decided and recorded."`
	Grant   grantCommand    `cmd:"" help:"Permissions of people, for tools that check them."`
	Did     didCommand      `cmd:"" help:"Print DID documents."`
	Release releaseCommands `embed:""`
}

// streams are the input and the outputs of a command.
type streams struct {
	in       io.Reader
	out, err io.Writer
	json     bool
}

// runProgram runs one command line, given without the program's name. printError turns
// its error into a text and an exit status.
func runProgram(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	var p program
	parser, err := kong.New(&p,
		kong.Name("aps"),
		kong.Description("Agents, auditors and monitors of an agentledger service."),
		kong.Writers(stdout, stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		return err
	}
	command, err := flags.Parse(parser, args)
	if command == nil || err != nil {
		return err
	}
	s := &streams{in: stdin, out: stdout, err: stderr, json: p.JSON}
	return runCommand(ctx, command, s, &people.Terminal{In: stdin, Out: stdout, JSON: p.JSON})
}

// runCommand calls the method Run of a command, which takes the parts that it needs.
func runCommand(ctx context.Context, command any, s *streams, t *people.Terminal) error {
	switch c := command.(type) {
	case interface{ Run(*streams) error }:
		return c.Run(s)
	case interface {
		Run(context.Context, *streams) error
	}:
		return c.Run(ctx, s)
	case interface {
		Run(context.Context, *streams, *people.Terminal) error
	}:
		return c.Run(ctx, s, t)
	case interface{ Run(*people.Terminal) error }:
		return c.Run(t)
	case interface {
		Run(context.Context, *people.Terminal) error
	}:
		return c.Run(ctx, t)
	case interface {
		Run(context.Context, *acts.Streams) error
	}:
		return c.Run(ctx, &acts.Streams{In: s.in, Out: s.out, Err: s.err})
	}
	return fmt.Errorf("the command %T has no method Run", command)
}
