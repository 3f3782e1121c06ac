package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/agentledger/agentledger/cmd/agentledger/datadir"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/backup"
	"github.com/agentledger/agentledger/internal/operate/transfer"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/log/audit"
)

// restoreCommand restores a backup to a data directory without a store.
type restoreCommand struct {
	offline
	From           string `arg:"" help:"Backup: its folder or its tar file." placeholder:"DIR|FILE.tar" type:"existing" expected:"a backup: its folder or its tar file"`
	Check          bool   `help:"Only re-verify the backup and compare it with the anchors."`
	AcceptRollback bool   `help:"Restore less than was shown: logs that lost events end, and successors replace them."`
	Reason         string `help:"Why events were lost. It is public in the successor logs."`
	AdoptHeads     bool   `help:"Confirm that no newer heads were ever shown, if anchors are missing."`
	carried
}

// Validate implements kong's check after parsing.
func (c restoreCommand) Validate() error {
	if c.AcceptRollback != (c.Reason != "") {
		return errors.New("--accept-rollback requires --reason, and --reason requires --accept-rollback")
	}
	if c.Storage != "" {
		return errors.New("the ledgers are in a database: docs/operate/postgresql.md says how to restore it")
	}
	return nil
}

// restoring is appended to the name of the store while a backup arrives.
const restoring = ".restoring"

// Run restores the backup. It returns errFound if the backup is damaged, or if the anchors show more than it contains.
func (c restoreCommand) Run(ctx context.Context, out terminal) error {
	x, err := c.readBackup(ctx)
	if errors.Is(err, backup.ErrUnauthenticated) {
		return fmt.Errorf("%w (--older-master-key-file names another key; --unauthenticated reads it without this check)", err)
	}
	if err != nil {
		return backupError(out, err)
	}
	found, err := c.compareExtracted(ctx, out, x)
	if err == nil && !c.Check && (c.AcceptRollback || !found.Differs()) {
		return c.finishRestore(ctx, out, x, found)
	}
	if err := errors.Join(err, x.Remove()); err != nil {
		return backupError(out, err)
	}
	if found.Differs() {
		fmt.Fprintln(out.stdout, "nothing was restored, because the anchors show more events than the backup has: "+
			"use a newer backup")
		return errFound
	}
	return nil
}

// readBackup extracts the backup to the folder where the store arrives, or with --check reads it in place.
func (c restoreCommand) readBackup(ctx context.Context) (*backup.Extracted, error) {
	keyring, err := c.keyring(c.Store)
	if err != nil {
		return nil, err
	}
	syncs.BeginStep(ctx, "reading", "bytes")
	if c.Check {
		return backup.Inspect(ctx, c.From, keyring)
	}
	if _, err := os.Stat(c.DatabaseDir()); err == nil {
		return nil, fmt.Errorf("there is a store at %s: move it away first", c.DatabaseDir())
	}
	arriving := c.DatabaseDir() + restoring
	if err := errors.Join(os.MkdirAll(c.Data, 0o700), os.RemoveAll(arriving)); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	return backup.Extract(ctx, c.From, arriving, keyring)
}

// compareExtracted checks the extracted store and prints how it differs from the anchors.
func (c restoreCommand) compareExtracted(ctx context.Context, out terminal,
	x *backup.Extracted) (found backup.Difference, err error) {
	err = c.checkExtracted(ctx, out, x, func(s *datadir.Store) error {
		if c.Check {
			if err := fsck(ctx, out, s, audit.Resume{}); err != nil {
				return err
			}
		}
		open := anchor.OpenReadOnly
		if c.Check {
			open = anchor.OpenBeside
		}
		heads := headsOf(s, out)
		if heads.Anchors, err = open(c.AnchorsDir()); err != nil {
			return err
		}
		found, err = heads.CompareAnchors(ctx)
		return errors.Join(err, heads.Anchors.Close())
	})
	for _, l := range append(found.Losses, found.Missing...) {
		fmt.Fprintln(out.stdout, l)
	}
	if n := len(found.Unanchored); n > 0 {
		fmt.Fprintf(out.stdout, "%s no anchor here%s\n", textcheck.Count(n, "ledger has", "ledgers have"), textIf(!c.AdoptHeads,
			": each rejects events until its latest checkpoint is adopted (--adopt-heads, agentledger adopt)"))
	}
	return found, err
}

// finishRestore moves the store to its final path, adopts heads, and creates the successors of logs that lost events.
func (c restoreCommand) finishRestore(ctx context.Context, out terminal, x *backup.Extracted,
	found backup.Difference) error {
	if err := x.MoveStore(c.DatabaseDir()); err != nil {
		return err
	}
	fmt.Fprintf(out.stdout, "restored %s, %s, as they were at %s\n", textcheck.Count(x.Ledgers, "ledger"), textcheck.Count(x.Events, "event"),
		x.MadeAt.Format("2006-01-02 15:04:05 MST"))
	if c.AdoptHeads {
		if err := c.adoptHeads(ctx, out, found.Unanchored); err != nil {
			return err
		}
	}
	for _, l := range found.Losses {
		if err := c.succeedLoss(ctx, out, l); err != nil {
			return fmt.Errorf("%w (run agentledger succeed for the remaining organizations)", err)
		}
	}
	return nil
}

func (c restoreCommand) adoptHeads(ctx context.Context, out terminal, unanchored []id.Tenant) error {
	s, err := c.openExisting(ctx, out)
	if err != nil {
		return err
	}
	ledgers, err := log.Open(ctx, log.Options{Store: s.Engine, Keyring: s.Keyring, Anchors: s.Anchors,
		Logger: c.Logging.NewLogger(out.stderr)})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	return errors.Join(backup.Adopt(ctx, ledgers, unanchored), ledgers.Close(), s.CloseEngine())
}

// succeedLoss creates the successor of one log.
func (c restoreCommand) succeedLoss(ctx context.Context, out terminal, l backup.Loss) error {
	s, err := c.openExisting(ctx, out)
	if err != nil {
		return err
	}
	run := transfer.Succession{Place: s.TransferPlace(c.Logging.NewLogger(out.stderr)),
		Organization: l.Organization.String(), Reason: c.Reason}
	successor, err := run.Run(ctx)
	if err = errors.Join(err, s.CloseEngine()); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out.stdout, successorText(successor))
	return err
}
