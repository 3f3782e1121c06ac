package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/agentledger/agentledger/internal/operate/transfer"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/tlog"
)

// succeedCommand lets an organization whose ledger is frozen continue with another ledger.
type succeedCommand struct {
	offline
	Organization string `help:"Slug or id of the organization." required:"" placeholder:"SLUG|ID" type:"slugorid"`
	Reason       string `help:"Why the log was abandoned. It is public in the first event of the new log." required:""`
	Checkpoint   string `help:"File with the latest signed checkpoint that was shown to anyone, if it is newer than what the frozen log shows." type:"existingfile" placeholder:"FILE"`
	JSON         bool   `name:"json" help:"Machine-readable output."`
}

// Run creates the successor, or completes a succession that an earlier run began.
func (c succeedCommand) Run(ctx context.Context, out terminal) error {
	var note []byte
	if c.Checkpoint != "" {
		var err error
		if note, err = os.ReadFile(c.Checkpoint); err == nil {
			_, err = tlog.ReadCheckpoint(note)
		}
		if err != nil {
			return fmt.Errorf("--checkpoint: expected a file with a signed checkpoint: %w", err)
		}
	}
	s, err := c.openExisting(ctx, out)
	if err != nil {
		return err
	}
	run := transfer.Succession{
		Place: s.TransferPlace(c.Logging.NewLogger(out.stderr)), Organization: c.Organization, Reason: c.Reason,
		Checkpoint: note,
	}
	successor, err := run.Run(ctx)
	if err = errors.Join(err, s.CloseEngine()); err != nil {
		return transferError(out, err)
	}
	return printResults(out, c.JSON, "logs", []transfer.Successor{successor}, successorText)
}

func successorText(s transfer.Successor) string {
	return fmt.Sprintf("%s ended, last known with %s. In its place:\n%s\nkey: %s\n"+
		"Give it to the witnesses before the server starts.", s.Predecessor, textcheck.Count(s.LastSize, "event"), s.Origin,
		s.LogKey)
}
