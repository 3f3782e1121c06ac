package demo

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/storage/pgstore/pgprograms"
)

// ErrNoPostgreSQL says how to get the programs.
var ErrNoPostgreSQL = errors.New("several nodes need PostgreSQL, and the programs of its version 15 or newer are not " +
	"here: install its server (Debian, Ubuntu: apt-get install postgresql; Fedora: dnf install postgresql-server; " +
	"macOS: brew install postgresql), or see the demo of one process, which needs nothing: agentledger demo")

// findPostgreSQL returns the newest installation on this machine, or ErrNoPostgreSQL.
func findPostgreSQL() (pgprograms.Installation, error) {
	found, err := pgprograms.Find()
	if errors.Is(err, pgprograms.ErrNone) {
		err = ErrNoPostgreSQL
	}
	return found, err
}

// database is a server that runs.
type database struct {
	installed pgprograms.Installation
	dir       string // data and socket
	process   *process
	log       tail
}

// serverTime bounds the start of a server, and its end.
const serverTime = time.Minute

// startDatabase makes a cluster and runs it. It is reached by a socket in its own folder alone.
func startDatabase(ctx context.Context, installed pgprograms.Installation) (*database, error) {
	dir, err := os.MkdirTemp("", "agentledger-pg-") // short, because the path of a socket is bounded
	if err != nil {
		return nil, err
	}
	d := &database{installed: installed, dir: dir}
	if installed.User != nil {
		err = os.Chown(dir, int(installed.User.Uid), int(installed.User.Gid))
	}
	if err == nil {
		err = d.initialize(ctx)
	}
	if err == nil {
		err = d.run(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start PostgreSQL: %w\n%s", err, d.log.String()), d.stop())
	}
	return d, nil
}

func (d *database) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := d.installed.Command(ctx, attributes(syscall.SIGQUIT), name, args...)
	c.Env = environment("LC_ALL=C", "TZ=UTC")
	return c
}

func (d *database) dataFolder() string { return filepath.Join(d.dir, "data") }

func (d *database) initialize(ctx context.Context) error {
	c := d.command(ctx, "initdb", "--pgdata", d.dataFolder(), "--username", "postgres", "--auth", "trust",
		"--encoding", "UTF8", "--no-locale", "--no-sync", "--no-instructions")
	c.Stdout, c.Stderr = &d.log, &d.log
	return c.Run()
}

// run starts the server and waits until it takes connections.
func (d *database) run(ctx context.Context) error {
	c := d.command(context.WithoutCancel(ctx), "postgres", "-D", d.dataFolder(), "-k", d.dir, "-c", "listen_addresses=",
		"-c", "max_connections=300", "-c", "shared_buffers=32MB")
	c.Stdout, c.Stderr = &d.log, &d.log
	var err error
	if d.process, err = startProcess(c); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, serverTime)
	defer cancel()
	for d.process.runs() {
		if d.command(ctx, "pg_isready", "--quiet", "--host", d.dir).Run() == nil {
			return nil
		}
		if err := syncs.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return errors.New("the server ended")
}

// url is the server's address as its superuser.
func (d *database) url() string {
	return "postgres://postgres@/postgres?" + url.Values{"host": {d.dir}}.Encode()
}

// stop ends the server and removes its files.
func (d *database) stop() error {
	if d.process != nil {
		_ = d.process.signal(syscall.SIGINT) // its files go, however it ended
	}
	return os.RemoveAll(d.dir)
}
