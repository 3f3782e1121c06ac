package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/cmd/agentledger/datadir"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/operate/backup"
	"github.com/agentledger/agentledger/internal/operate/recordcheck"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/log/audit"
)

// fsckCommand re-verifies the store of a stopped server, or a snapshot of a running one. It does not write to the store.
type fsckCommand struct {
	offline
	beside
	Progress string `help:"File that records the progress in large ledgers. A run with the same file continues from there. It is removed at the end." type:"path" placeholder:"FILE"`
}

// Run prints each fault with its location, then a summary. A snapshot is compared with anchors that were read before it,
// so an organization that is founded at that moment may be reported as having none.
func (c fsckCommand) Run(ctx context.Context, out terminal) error {
	if c.Server != "" {
		return c.withSnapshot(ctx, out, c.beside, func(s *datadir.Store, _ string) error { return c.check(ctx, out, s) })
	}
	s, err := c.openExistingReadOnly(ctx, out, anchor.OpenReadOnly)
	if err != nil {
		return err
	}
	return errors.Join(c.check(ctx, out, s), s.Close())
}

// check is fsck with the progress of an earlier run.
func (c fsckCommand) check(ctx context.Context, out terminal, s *datadir.Store) error {
	if c.Progress == "" {
		return fsck(ctx, out, s, audit.Resume{})
	}
	marks, err := audit.OpenMarkFile(c.Progress)
	if err != nil {
		return err
	}
	err = fsck(ctx, out, s, audit.Resume{Progress: marks})
	if err == nil || errors.Is(err, errFound) {
		return errors.Join(err, marks.Remove())
	}
	return errors.Join(err, marks.Keep())
}

// fsck re-verifies every ledger of a store.
func fsck(ctx context.Context, out terminal, s *datadir.Store, resume audit.Resume) error {
	if err := s.CheckMasterKey(ctx); err != nil {
		return err
	}
	syncs.BeginStep(ctx, "verifying", "events")
	result, err := audit.ResumeFsck(ctx, s.Engine, s.Keyring, s.Anchors, resume,
		func(f audit.Finding) { fmt.Fprintln(out.stdout, f) })
	if err != nil {
		return err
	}
	contradictions, err := compareRecords(ctx, out, s)
	if err != nil {
		return err
	}
	result.Findings += contradictions
	if result.Importing > 0 {
		fmt.Fprintf(out.stdout, "%s not arrived: repeat the import, or drop it (import --drop)\n",
			textcheck.Count(result.Importing, "of the ledgers has", "of the ledgers have"))
	}
	if result.Moved > 0 {
		fmt.Fprintf(out.stdout, "%s moved to another store\n",
			textcheck.Count(result.Moved, "of the ledgers was", "of the ledgers were"))
	}
	if result.Succeeded > 0 {
		fmt.Fprintf(out.stdout, "%s by another\n", textcheck.Count(result.Succeeded, "of the ledgers is frozen and succeeded",
			"of the ledgers are frozen, each succeeded"))
	}
	fmt.Fprintf(out.stdout, "%s, %s, %s\n", textcheck.Count(result.Ledgers, "ledger"), textcheck.Count(result.Events, "event"),
		textcheck.Count(result.Findings, "fault"))
	if result.Findings > 0 {
		return errFound
	}
	return nil
}

// compareRecords compares the records of each organization with what its log states, and returns the number of contradictions.
// It skips ledgers that have not arrived, have moved away or are frozen, because their records are not in force.
func compareRecords(ctx context.Context, out terminal, s *datadir.Store) (n int, err error) {
	ledgers := log.NewReader(log.Options{Store: s.Engine, Keyring: s.Keyring})
	for t, err := range s.Engine.Tenants(ctx) {
		if err != nil {
			return n, err
		}
		stored, err := ledgers.Open(ctx, t)
		var known log.Fault
		if err == nil {
			known, err = stored.RecordedFault(ctx)
		}
		if log.IsDamage(err) {
			continue // already reported
		}
		if err != nil {
			return n, err
		}
		if known.Level == log.Frozen || known.Level == log.Importing || known.Level == log.Moved {
			continue
		}
		var stated recordcheck.Statements
		found, err := stated.CompareStore(ctx, s.Engine, stored.Identity())
		if err != nil && !log.IsDamage(err) {
			return n, err
		}
		if err != nil {
			fmt.Fprintf(out.stdout, "%s: records: %v\n", stored.Identity().Origin, err)
			n++
		}
		for _, c := range found {
			fmt.Fprintf(out.stdout, "%s: record %v\n", stored.Identity().Origin, c)
			n++
		}
	}
	return n, nil
}

// compactCommand rewrites the files of the store of a stopped server.
type compactCommand struct{ offline }

// Run returns when no file contains an erased envelope.
func (c compactCommand) Run(ctx context.Context, out terminal) error {
	s, err := c.openExisting(ctx, out)
	if err != nil {
		return err
	}
	return errors.Join(backup.Compact(ctx, s.Engine), s.Close())
}

// openExisting opens an existing store for writing.
func (c offline) openExisting(ctx context.Context, out terminal) (*datadir.Store, error) {
	if err := datadir.Require(ctx, c.Store); err != nil {
		return nil, err
	}
	return c.openToWrite(ctx, out)
}

// openToWrite opens or creates a store while no server has it open.
func (c offline) openToWrite(ctx context.Context, out terminal) (*datadir.Store, error) {
	logger := c.Logging.NewLogger(out.stderr)
	s, err := datadir.Open(ctx, c.Store, c.Tuning, logger, nil)
	if err != nil {
		return nil, err
	}
	if err := claimDatabase(ctx, c.Store, "", s, logger); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Memory bounds of commands that read a whole store. Together with the program itself they need less than 400 MiB,
// whatever the size of the store.
const (
	readCacheMiB = 128       // for blocks of the store: with 64, 200,000 events take twice the processor time
	readMemory   = 320 << 20 // bytes of Go's heap, which contains Pebble's blocks too
)

// forReading bounds the memory of this process and returns the settings for reading a whole store.
func (c offline) forReading() config.Tuning {
	setMemoryLimit(readMemory)
	t := c.Tuning
	if t.CacheMiB == 0 || t.CacheMiB > readCacheMiB {
		t.CacheMiB = readCacheMiB
	}
	return t
}

// openExistingReadOnly opens an existing store for reading.
func (c offline) openExistingReadOnly(ctx context.Context, out terminal,
	openAnchors datadir.AnchorOpener) (*datadir.Store, error) {
	if err := datadir.Require(ctx, c.Store); err != nil {
		return nil, err
	}
	return datadir.OpenReadOnly(ctx, c.Store, c.forReading(), c.Logging.NewLogger(out.stderr), openAnchors)
}
