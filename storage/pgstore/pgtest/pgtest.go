// Package pgtest runs real PostgreSQL servers for tests.
//
// Invariants:
//
//   - Each server has its own directory and listens only on a Unix socket in it, so servers of several test runs never
//     conflict.
//   - A server never runs as root: a test that does starts it as the user postgres or nobody.
//   - A server ends with the test process, and Stop leaves nothing behind.
//   - Tests are not skipped: without the programs of PostgreSQL, Start returns an error that explains how to install them.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// startTime bounds how long a server may take to accept connections.
const startTime = 60 * time.Second

// Server is a PostgreSQL server, which may be stopped.
type Server struct {
	programs programs
	dir      string // log, socket and, unless the layout has another folder, data
	layout   Layout
	settings []string
	process  *exec.Cmd // nil while the server is stopped
	ended    chan struct{}

	schemas struct { // of NewSchema
		sync.Mutex
		text string // statements that create the template
		made int
	}
}

// Layout contains the folders of a server's files, which are created if necessary. A folder that is empty is in the
// server's directory, which is in memory if the system has an in-memory file system. A benchmark must set Data.
type Layout struct {
	Data string
	Log  string // write-ahead log
	// OfThread means that only the calling thread sees these folders. The server is started by that thread and ends
	// with it. Otherwise it ends with the process.
	OfThread bool
}

// Start creates a cluster and starts its server. settings (name=value) are added to the defaults for tests, which never
// include settings that a durable store is rejected for.
func Start(settings ...string) (*Server, error) { return StartIn(Layout{}, settings...) }

// StartIn is like Start, with files on other volumes.
func StartIn(l Layout, settings ...string) (*Server, error) {
	p, err := findPrograms()
	if err != nil {
		return nil, err
	}
	s, err := p.newServer(l, settings)
	if err != nil {
		return nil, err
	}
	if l == (Layout{}) {
		err = s.copyCluster()
	} else {
		err = p.initialize(s.dataDirectory(), l.Log)
	}
	if err == nil {
		err = s.Run()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	return s, nil
}

// dirPrefix is the prefix of the servers' directory names. The ID of the process that started the server follows.
const dirPrefix = "agentledger-pg-"

// newServer creates the directory of a server and the folders of its layout.
func (p programs) newServer(l Layout, settings []string) (*Server, error) {
	dir, err := os.MkdirTemp(serverFolder(), fmt.Sprintf("%s%d-", dirPrefix, os.Getpid()))
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	for _, folder := range []string{dir, l.Data, l.Log} {
		if folder == "" || err != nil {
			continue
		}
		if err = os.MkdirAll(folder, 0o700); err == nil && p.User != nil {
			err = os.Chown(folder, int(p.User.Uid), int(p.User.Gid))
		}
	}
	return &Server{programs: p, dir: dir, layout: l, settings: settings}, err
}

func (s *Server) dataDirectory() string {
	if s.layout.Data != "" {
		return s.layout.Data
	}
	return filepath.Join(s.dir, "data")
}

func (s *Server) logFile() string { return filepath.Join(s.dir, "log") }

// Dir returns the server's directory. Stop removes it.
func (s *Server) Dir() string { return s.dir }

// Socket returns the path of the Unix socket that the server listens on.
func (s *Server) Socket() string { return filepath.Join(s.dir, ".s.PGSQL.5432") }

// URL returns the server's URL for the superuser, with additional parameters (name=value), for example
// search_path=name.
func (s *Server) URL(parameters ...string) string {
	q := url.Values{"host": {s.dir}}
	for _, p := range parameters {
		name, value, _ := strings.Cut(p, "=")
		q.Set(name, value)
	}
	return "postgres://postgres@/postgres?" + q.Encode()
}

// Run starts a server that was killed or halted.
func (s *Server) Run() error {
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("run postgres: %w", err)
	}
	defer log.Close()
	args := []string{"-D", s.dataDirectory(), "-k", s.dir}
	for _, setting := range append([]string{"listen_addresses=", "max_connections=200", "shared_buffers=64MB",
		"max_wal_size=1GB"}, s.settings...) {
		args = append(args, "-c", setting)
	}
	s.process = s.programs.command("postgres", args...)
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.startProcess(); err != nil {
		return fmt.Errorf("run postgres: %w", err)
	}
	return s.awaitReady()
}

// startProcess starts the server's process from a thread that lives as long as the server, because the system ends a
// process together with the thread that started it (prctl(2), PR_SET_PDEATHSIG), and any other thread may end.
func (s *Server) startProcess() error {
	s.ended = make(chan struct{})
	started := make(chan error, 1)
	if s.layout.OfThread {
		started <- s.process.Start()
	}
	go func() {
		if !s.layout.OfThread {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			started <- s.process.Start()
		}
		_ = s.process.Wait() // the log contains the reason
		close(s.ended)
	}()
	return <-started
}

// awaitReady returns when the server accepts connections.
func (s *Server) awaitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.URL())
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.ended:
			return s.failure("exited at startup")
		case <-ctx.Done():
			return s.failure(err.Error())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Recover returns when a server that has crashed accepts connections again. It restarts a server that has exited.
func (s *Server) Recover() error {
	err := s.awaitReady()
	select {
	case <-s.ended:
		return s.Run()
	default:
		return err
	}
}

func (s *Server) failure(what string) error {
	log, _ := os.ReadFile(s.logFile())
	return fmt.Errorf("run postgres: %s; its log:\n%s", what, log)
}

// Kill ends all processes of the server at once, like a power failure. Its data remains.
func (s *Server) Kill() error {
	if err := s.process.Process.Signal(syscall.SIGSTOP); err != nil { // it starts no others now
		return fmt.Errorf("kill postgres: %w", err)
	}
	children := childrenOf(s.process.Process.Pid)
	for _, child := range children {
		_ = syscall.Kill(child, syscall.SIGKILL) // it may already have ended
	}
	if err := s.process.Process.Kill(); err != nil {
		return fmt.Errorf("kill postgres: %w", err)
	}
	<-s.ended
	s.process = nil
	for _, child := range children { // they hold the shared memory until they are gone
		for runs(child) {
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// Halt stops a server in an orderly way. Its data remains.
func (s *Server) Halt() error {
	if s.process == nil {
		return nil
	}
	if err := s.process.Process.Signal(syscall.SIGINT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop postgres: %w", err)
	}
	<-s.ended
	s.process = nil
	return nil
}

// CheckRunning returns an error with the server's log if the server has exited unexpectedly.
func (s *Server) CheckRunning() error {
	select {
	case <-s.ended:
		return s.failure("exited unexpectedly")
	default:
		return nil
	}
}

// Stop stops a server and removes its directory.
func (s *Server) Stop() error {
	return errors.Join(s.Halt(), os.RemoveAll(s.dir))
}
