// Package pgtest runs real PostgreSQL servers for tests.
//
// Invariants:
//
//   - A server has a directory of its own and is reached by a Unix socket in it
//     alone: servers of several test runs never meet.
//   - It never runs as root: a test that does hands it to the user postgres or
//     nobody.
//   - It ends with the test process, and Stop leaves nothing behind.
//   - Nothing is skipped: without the programs of PostgreSQL, Start says how to
//     get them.
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

// startTime bounds how long a server may take until it answers.
const startTime = 60 * time.Second

// Server is one PostgreSQL server, running or not.
type Server struct {
	programs programs
	dir      string // log, socket and, unless the layout says otherwise, data
	layout   Layout
	settings []string
	process  *exec.Cmd // nil when it does not run
	ended    chan struct{}

	schemas struct { // of NewSchema
		sync.Mutex
		text string // statements that create the template
		made int
	}
}

// Layout says where a server has its files, as folders that need not be there. A folder that is ""
// lies in the server's directory, which is in memory if the system has a file system for that. A measurement must name
// a folder for the data.
type Layout struct {
	Data string
	Log  string // write-ahead log
	// OfThread says that the calling thread alone sees these folders. The server is started in that
	// thread and ends with it. Without this the server ends with the process.
	OfThread bool
}

// Start makes a new cluster and runs it. Settings, as name=value, come on top of
// those that suit tests: no settings that a durable store is refused for.
func Start(settings ...string) (*Server, error) { return StartIn(Layout{}, settings...) }

// StartIn is Start with files on other volumes.
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

// dirPrefix begins the names of the directories of servers. The ID of the process that started the server follows it.
const dirPrefix = "agentledger-pg-"

// newServer makes the directory of a server and the folders of its layout.
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

// Dir is the server's directory; it goes with Stop.
func (s *Server) Dir() string { return s.dir }

// Socket is the path of the Unix socket that the server listens on.
func (s *Server) Socket() string { return filepath.Join(s.dir, ".s.PGSQL.5432") }

// URL is the server's address as a superuser. Parameters, as name=value, are
// added to it, for example search_path=name.
func (s *Server) URL(parameters ...string) string {
	q := url.Values{"host": {s.dir}}
	for _, p := range parameters {
		name, value, _ := strings.Cut(p, "=")
		q.Set(name, value)
	}
	return "postgres://postgres@/postgres?" + q.Encode()
}

// Run starts a server that was killed or stopped with its data left.
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

// startProcess starts the server's process in a thread that lives as long as the server, because the
// system ends a process with the thread that started it (prctl(2), PR_SET_PDEATHSIG), and any other
// thread may end.
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
		_ = s.process.Wait() // how it ended is in its log
		close(s.ended)
	}()
	return <-started
}

// awaitReady returns when the server takes connections.
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
			return s.failure("ended at once")
		case <-ctx.Done():
			return s.failure(err.Error())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Recover returns when a server that crashed by itself takes connections again; it
// starts one that gave up.
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

// Kill ends all processes of the server as a loss of power would: without a
// word. Its data stays.
func (s *Server) Kill() error {
	if err := s.process.Process.Signal(syscall.SIGSTOP); err != nil { // it starts no others now
		return fmt.Errorf("kill postgres: %w", err)
	}
	children := childrenOf(s.process.Process.Pid)
	for _, child := range children {
		_ = syscall.Kill(child, syscall.SIGKILL) // it may have ended by itself
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

// Halt ends a server in an orderly way. Its data stays.
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

// CheckRunning returns an error with the server's log when it ended by itself.
func (s *Server) CheckRunning() error {
	select {
	case <-s.ended:
		return s.failure("ended by itself")
	default:
		return nil
	}
}

// Stop ends a server and removes its directory.
func (s *Server) Stop() error {
	return errors.Join(s.Halt(), os.RemoveAll(s.dir))
}
