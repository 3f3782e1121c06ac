package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/agentledger/agentledger/log"
)

// fsckCommand re-verifies a stopped server's store.
type fsckCommand struct {
	offline
}

// Run prints each fault with its place, then a summary.
func (c fsckCommand) Run(ctx context.Context, out terminal) error {
	s, err := c.open(ctx, out)
	if err != nil {
		return err
	}
	result, err := log.Fsck(ctx, s.engine, s.keyring, s.anchors, func(f log.Finding) { fmt.Fprintln(out.stdout, f) })
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	if result.Importing > 0 {
		fmt.Fprintf(out.stdout, "%d of the ledgers have not arrived: run their import again, or give it up (import --drop)\n", result.Importing)
	}
	if result.Moved > 0 {
		fmt.Fprintf(out.stdout, "%d of the ledgers were moved to another store\n", result.Moved)
	}
	if result.Succeeded > 0 {
		fmt.Fprintf(out.stdout, "%d of the ledgers are frozen, and another goes on in their place\n", result.Succeeded)
	}
	fmt.Fprintf(out.stdout, "%d ledgers, %d events, %d faults\n", result.Ledgers, result.Events, result.Findings)
	if result.Findings > 0 {
		return errFound
	}
	return nil
}

// open opens a store that is there already.
func (c offline) open(ctx context.Context, out terminal) (*store, error) {
	if _, err := os.Stat(c.DatabaseDir()); c.Storage == "" && err != nil {
		return nil, fmt.Errorf("no store in the data directory: %w", err)
	}
	return openStore(ctx, c.Store, newLogger(c.Logging, out.stderr), nil)
}
