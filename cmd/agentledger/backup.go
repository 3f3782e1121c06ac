package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/cmd/agentledger/datadir"
	"github.com/agentledger/agentledger/internal/operate/backup"
	"github.com/agentledger/agentledger/internal/programversion"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log/audit"
)

// backupCommand copies the embedded store of a running or a stopped server.
type backupCommand struct {
	offline
	beside
	To     string `arg:"" help:"Folder of backups, or one tar file." type:"path" placeholder:"DIR|FILE.tar"`
	Keep   int    `help:"Number of latest backups to keep in the folder, including the new one, and the same number of latest fully verified ones. An older backup is removed only if a newer one was fully verified (--verify). Default: all."`
	Verify bool   `help:"Re-verify every ledger of the new backup from its first event."`
	JSON   bool   `name:"json" help:"Machine-readable output."`
}

// Validate implements kong's check after parsing.
func (c backupCommand) Validate() error {
	if c.Keep < 0 || c.Keep > 0 && backup.IsArchive(c.To) {
		return errors.New("--keep must be positive and requires a folder of backups")
	}
	return c.CheckCopy(c.To)
}

// madeBackup is the output with --json.
type madeBackup struct {
	Path   string    `json:"path"`
	Name   string    `json:"name"`
	MadeAt time.Time `json:"made_at"`

	Ledgers int    `json:"ledgers"`
	Events  uint64 `json:"events"`
	Bytes   int64  `json:"bytes"`
	Shared  int64  `json:"shared_bytes"`
	Faults  int    `json:"faults"`
}

// Run makes the backup. It returns errFound if a ledger can't be read or verified, if an earlier backup is damaged, or
// if older backups stay beyond --keep because no newer one was verified.
func (c backupCommand) Run(ctx context.Context, out terminal) error {
	var made backup.Made
	err := c.withSnapshot(ctx, out, c.beside, func(s *datadir.Store, dir string) (err error) {
		source := backup.Source{Dir: dir, Heads: headsOf(s, out),
			Version: programversion.Read().Short(), Clock: time.Now}
		syncs.BeginStep(ctx, "copying", "bytes")
		if backup.IsArchive(c.To) {
			made, err = source.MakeFile(ctx, c.To)
		} else {
			made, err = source.MakeIn(ctx, c.To)
		}
		return err
	})
	if err != nil {
		return err
	}
	name, err := made.Name()
	if err != nil {
		return err
	}
	shown := madeBackup{Path: made.Path, Name: name, MadeAt: made.MadeAt, Ledgers: made.Ledgers,
		Events: uint64(made.Events), Bytes: made.Bytes(), Shared: made.Shared, Faults: made.Faults}
	if err := printResults(out, c.JSON, "backups", []madeBackup{shown}, func(m madeBackup) string {
		return fmt.Sprintf("%s: %s, %s, %s, %d of them shared with the backup before\nheads: %s", m.Path,
			textcheck.Count(m.Ledgers, "ledger"), textcheck.Count(m.Events, "event"), textcheck.Count(m.Bytes, "byte"), m.Shared, m.Name)
	}); err != nil {
		return err
	}
	return c.finishBackup(ctx, out, made)
}

// finishBackup verifies the backup, removes older backups that it replaces, and records the outcome.
func (c backupCommand) finishBackup(ctx context.Context, out terminal, made backup.Made) (err error) {
	if c.Verify {
		err = c.verifyBackup(ctx, out, made.Path)
	}
	verified := backup.VerificationFor(c.Verify, err)
	err = errors.Join(err, made.Mark(verified, time.Now()))
	if err == nil && made.Faults > 0 {
		err = errFound
	}
	if err == nil && c.Keep > 0 { // a backup with faults is no reason to remove others
		err = c.removeOld(ctx, out, &made)
	}
	if made.Damaged != nil {
		err = errors.Join(err, backupError(out, made.Damaged.Err))
	}
	return errors.Join(err, made.WriteNote(c.Data, verified))
}

// removeOld removes backups beyond --keep. It returns errFound if it kept some because no newer backup was verified.
func (c backupCommand) removeOld(ctx context.Context, out terminal, made *backup.Made) error {
	unreplaced, err := made.RemoveOld(ctx, c.To, c.Keep, out.printProblem)
	if err == nil && unreplaced > 0 {
		out.printProblem(fmt.Sprintf("%s in %s beyond --keep %d, because no newer one was verified whole: "+
			"run the command with --verify", textcheck.Count(unreplaced, "older backup stays", "older backups stay"), c.To, c.Keep))
		err = errFound
	}
	return err
}

// headsOf reads the heads of a store and prints problems.
func headsOf(s *datadir.Store, out terminal) backup.Heads {
	return backup.Heads{Store: s.Engine, Keyring: s.Keyring, Anchors: s.Anchors,
		Report: out.printProblem}
}

// verifyBackup re-verifies a backup in place.
func (c offline) verifyBackup(ctx context.Context, out terminal, path string) error {
	keyring, err := datadir.ReadKeyring(c.Store)
	if err != nil {
		return err
	}
	syncs.BeginStep(ctx, "reading", "bytes")
	x, err := backup.Inspect(ctx, path, keyring)
	if err == nil {
		err = c.checkExtracted(ctx, out, x, func(s *datadir.Store) error { return fsck(ctx, out, s, audit.Resume{}) })
		err = errors.Join(err, x.Remove())
	}
	return backupError(out, err)
}

// checkExtracted compares an extracted store with the heads of its backup, and lets check look at it.
func (c offline) checkExtracted(ctx context.Context, out terminal, x *backup.Extracted,
	check func(*datadir.Store) error) error {
	s, err := datadir.OpenCopy(ctx, x.StoreDir(), nil, c.Store, c.forReading(), c.Logging.NewLogger(out.stderr))
	if err != nil {
		return err
	}
	err = x.CompareHeads(ctx, headsOf(s, out))
	if err == nil {
		err = check(s)
	}
	return errors.Join(err, s.Close())
}

// backupError prints that a backup is damaged and returns errFound (exit status 1). It returns other errors as they
// are.
func backupError(out terminal, err error) error {
	if !errors.Is(err, backup.ErrDamaged) {
		return err
	}
	out.printError(err)
	return errFound
}
