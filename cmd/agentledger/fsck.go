package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/agentledger/agentledger/internal/operate/compaction"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/log/audit"
	"github.com/agentledger/agentledger/storage/pgstore"
)

// fsckCommand re-verifies a stopped server's store and writes nothing to it.
type fsckCommand struct {
	offline
}

// Run prints each fault with its place, then a summary.
func (c fsckCommand) Run(ctx context.Context, out terminal) error {
	s, err := c.openExistingReadOnly(ctx, out, anchor.OpenReadOnly)
	if err != nil {
		return err
	}
	result, err := audit.Fsck(ctx, s.engine, s.keyring, s.anchors,
		func(f audit.Finding) { fmt.Fprintln(out.stdout, f) })
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	if result.Importing > 0 {
		fmt.Fprintf(out.stdout,
			"%d of the ledgers have not arrived: run their import again, or give it up (import --drop)\n",
			result.Importing)
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

// compactCommand rewrites the files of a stopped server's store.
type compactCommand struct{ offline }

// Run returns when no file holds an envelope that was erased.
func (c compactCommand) Run(ctx context.Context, out terminal) error {
	s, err := c.openExisting(ctx, out)
	if err != nil {
		return err
	}
	return errors.Join(compaction.Compact(ctx, s.engine), s.Close())
}

// openExisting opens a store that is there already.
func (c offline) openExisting(ctx context.Context, out terminal) (*store, error) {
	if err := c.requireStore(ctx); err != nil {
		return nil, err
	}
	return openStore(ctx, c.Store, c.Tuning, newLogger(c.Logging, out.stderr), nil)
}

// openExistingReadOnly opens a store that is there already, to read it alone.
func (c offline) openExistingReadOnly(ctx context.Context, out terminal, openAnchors anchorOpener) (*store, error) {
	if err := c.requireStore(ctx); err != nil {
		return nil, err
	}
	return openStoreReadOnly(ctx, c.Store, c.Tuning, newLogger(c.Logging, out.stderr), openAnchors)
}

// requireStore refuses to make a store: an empty one at a mistyped address would be found to be without a fault.
func (c offline) requireStore(ctx context.Context) error {
	if c.Storage == "" {
		if _, err := os.Stat(c.DatabaseDir()); err != nil {
			return fmt.Errorf("no store in the data directory: %w", err)
		}
		return nil
	}
	found, err := pgstore.Exists(ctx, pgstore.Options{URL: c.Storage})
	if err == nil && !found {
		err = errors.New("no store in the database")
	}
	return err
}
