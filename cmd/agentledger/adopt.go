package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/agentledger/agentledger/cmd/agentledger/datadir"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/tlog"
)

// adoptCommand is the operator's decision that a checkpoint is the newest one that its log ever showed.
type adoptCommand struct {
	offline
	Checkpoint string `help:"File with the signed checkpoint." required:"" type:"existingfile"`
}

// Run finds the ledger by the checkpoint's origin and adopts it, which writes the anchors alone.
func (c adoptCommand) Run(ctx context.Context, out terminal) error {
	note, err := os.ReadFile(c.Checkpoint)
	if err != nil {
		return err
	}
	checkpoint, err := tlog.ReadCheckpoint(note)
	if err != nil {
		return err
	}
	s, err := c.openExistingReadOnly(ctx, out, anchor.Open)
	if err != nil {
		return err
	}
	ledgers, err := log.Open(ctx, log.Options{Store: s.Engine, Keyring: s.Keyring, Anchors: s.Anchors,
		Logger: c.Logging.NewLogger(out.stderr)})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	err = adoptCheckpoint(ctx, ledgers, s, checkpoint.Origin, note)
	anchored, _ := s.Anchors.Size(checkpoint.Origin)
	if err := errors.Join(err, ledgers.Close(), s.Engine.Close()); err != nil {
		return err
	}
	if anchored > checkpoint.Size {
		_, err = fmt.Fprintf(out.stdout, "%s: its anchor is newer already, at size %d\n", checkpoint.Origin, anchored)
		return err
	}
	_, err = fmt.Fprintf(out.stdout, "%s: the checkpoint at size %d is its anchor now\n", checkpoint.Origin,
		checkpoint.Size)
	return err
}

func adoptCheckpoint(ctx context.Context, ledgers *log.Ledgers, s *datadir.Store, origin id.Origin, note []byte) error {
	for t, err := range s.Engine.Tenants(ctx) {
		if err != nil {
			return err
		}
		state, err := ledgers.State(ctx, t)
		if err != nil {
			return err
		}
		if state.Identity().Origin == origin {
			return ledgers.Adopt(ctx, t, note)
		}
	}
	return fmt.Errorf("there is no ledger of origin %s here", origin)
}
