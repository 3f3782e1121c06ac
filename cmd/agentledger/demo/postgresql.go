package demo

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	"github.com/agentledger/agentledger/storage/pgstore/pgprograms"
)

// ErrNoPostgreSQL explains how to get the programs.
var ErrNoPostgreSQL = errors.New("several nodes need PostgreSQL 15 or newer, which is not " +
	"installed: install its server (Debian, Ubuntu: apt-get install postgresql; Fedora: dnf install postgresql-server; " +
	"macOS: brew install postgresql), or run the demo of one process: agentledger demo")

// database is a running PostgreSQL server that is reached by a socket in its own folder.
type database struct {
	dir string // data and socket
	*process
}

// startDatabase creates a database cluster and serves it.
func (s *stage) startDatabase(ctx context.Context) {
	installed, err := pgprograms.Find()
	if errors.Is(err, pgprograms.ErrNone) {
		err = ErrNoPostgreSQL
	}
	try(err)
	d := &database{dir: must(os.MkdirTemp("", "agentledger-pg-"))} // short, because the path of a socket is bounded
	s.database = d
	if installed.User != nil {
		try(os.Chown(d.dir, int(installed.User.Uid), int(installed.User.Gid)))
	}
	log := s.openLog("PostgreSQL")
	defer log.Close()
	run := func(name string, args ...string) *process {
		c := installed.Command(context.WithoutCancel(ctx), attributes(syscall.SIGQUIT), name, args...)
		c.Env, c.Stdout, c.Stderr = environment("LC_ALL=C", "TZ=UTC"), log, log
		return must(startProcess(c))
	}
	data := filepath.Join(d.dir, "data")
	try(run("initdb", "--pgdata", data, "--username", "postgres", "--auth", "trust", "--encoding", "UTF8", "--no-locale",
		"--no-sync", "--no-instructions").wait())
	d.process = run("postgres", "-D", data, "-k", d.dir, "-c", "listen_addresses=", "-c", "max_connections=300",
		"-c", "shared_buffers=32MB")
	ready := await(ctx, func() bool {
		return run("pg_isready", "--quiet", "--host", d.dir).wait() == nil || !d.runs()
	})
	if !ready || !d.runs() {
		try(errors.Join(errors.New("start PostgreSQL: it accepts no connections"), ctx.Err()))
	}
	s.note("PostgreSQL %s, process %d, in a folder of the demo", installed.Version, d.Process.Pid)
}

// url is the address of the server for its superuser.
func (d *database) url() string {
	return "postgres://postgres@/postgres?" + url.Values{"host": {d.dir}}.Encode()
}

// stop ends the server, if there is one, and removes its files.
func (d *database) stop() error {
	if d == nil {
		return nil
	}
	if d.runs() {
		_ = d.end(syscall.SIGINT) // its files are removed however it ends
	}
	return os.RemoveAll(d.dir)
}
