package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/agentledger/agentledger/cmd/agentledger/datadir"
	"github.com/agentledger/agentledger/internal/operate/backup"
	"github.com/agentledger/agentledger/log/anchor"
)

// beside names the running server, for commands that call it or else work in the store of a stopped one.
type beside struct {
	Server             string `help:"Address of the identity listener of the running server, http://127.0.0.1:8091 or unix:PATH; it needs the platform secret. Without it the server must be stopped." placeholder:"URL" type:"server"`
	PlatformSecretFile string `help:"File of the platform secret, for --server. Default: DATA/platform.secret. AGENTLEDGER_PLATFORM_SECRET holds the secret itself instead." type:"path" env:"AGENTLEDGER_PLATFORM_SECRET_FILE"`
}

// snapshotTimeout bounds a snapshot, for which the server first syncs the store.
const snapshotTimeout = time.Minute

// snapshotCall returns a platform call about snapshots.
func (c offline) snapshotCall(b beside, method, path string) platformCall {
	return platformCall{server: b.Server, store: c.Store, secretFile: b.PlatformSecretFile, timeout: snapshotTimeout,
		method: method, path: "/snapshots" + path}
}

// withSnapshot calls read with a snapshot of the store, and removes the snapshot. The server makes the snapshot, or this
// process if the server is stopped.
func (c offline) withSnapshot(ctx context.Context, out terminal, b beside,
	read func(s *datadir.Store, dir string) error) error {
	if c.Storage != "" {
		return errors.New("the ledgers are in a database: docs/operate/postgresql.md says how to copy it")
	}
	anchors, err := anchor.OpenBeside(c.AnchorsDir()) // before the snapshot, which then extends them
	if err != nil {
		return err
	}
	name, err := c.makeSnapshot(ctx, out, b)
	if err != nil {
		return errors.Join(fmt.Errorf("make snapshot: %w", err), anchors.Close())
	}
	dir := filepath.Join(c.SnapshotsDir(), name)
	use := backup.UseSnapshot(dir)
	s, err := datadir.OpenCopy(ctx, dir, anchors, c.Store, c.forReading(), c.Logging.NewLogger(out.stderr))
	if err == nil {
		err = errors.Join(read(s, dir), s.Close())
	} else {
		err = errors.Join(err, anchors.Close())
	}
	return errors.Join(err, c.removeSnapshot(ctx, b, dir), use.End())
}

func (c offline) makeSnapshot(ctx context.Context, out terminal, b beside) (string, error) {
	if b.Server != "" {
		var made struct {
			Snapshot string `json:"snapshot"`
		}
		err := c.snapshotCall(b, http.MethodPost, "").callServer(ctx, &made)
		return made.Snapshot, err
	}
	s, err := c.openExisting(ctx, out)
	if err != nil {
		return "", fmt.Errorf("without --server, a snapshot needs a stopped server: %w", err)
	}
	snapshots := backup.Snapshots{Store: s.Engine, Dir: c.SnapshotsDir(), Clock: time.Now}
	name, err := snapshots.Make(ctx)
	return name, errors.Join(err, s.Close())
}

// removeSnapshot runs even if the command was interrupted.
func (c offline) removeSnapshot(ctx context.Context, b beside, dir string) error {
	if b.Server == "" {
		return os.RemoveAll(dir)
	}
	call := c.snapshotCall(b, http.MethodDelete, "/"+filepath.Base(dir))
	if err := call.callServer(context.WithoutCancel(ctx), nil); err != nil {
		return fmt.Errorf("remove snapshot: %w", err)
	}
	return nil
}
