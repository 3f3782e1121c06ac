// Package demo plays the demo: it starts the service as child processes of this program, acts over HTTP as an operator,
// as agents and as an outsider, and prints each check.
//
// One process on the embedded store shows the day of an agent (day.go). Several nodes on PostgreSQL show that nothing is
// lost when the node that owns a log is killed (nodes.go).
//
// Invariants:
//
//   - The demo owns its database, processes and files, and removes them, also after an error or a signal.
//   - The outsider trusts the log keys that the operator received, and nothing else.
//   - No check depends on how long something takes.
package demo

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentledger/agentledger/internal/syncs"
)

// Options configure Play. All are required.
type Options struct {
	Nodes               int    // 1 on the embedded store, or 2 to maxNodes on PostgreSQL
	Once                bool   // end after the checks
	Listen              string // address of the service if it is one process
	LogLevel, LogFormat string
	Out                 io.Writer // receives the story
	Errors              io.Writer // receives the logs if the demo cannot continue
}

const maxNodes = 9

// Play plays the demo and reports whether every check has passed. An error means that the demo could not continue. It
// returns ErrNoPostgreSQL if several nodes are to be shown without PostgreSQL on this machine.
func Play(ctx context.Context, o Options) (passed bool, err error) {
	if o.Nodes < 1 || o.Nodes > maxNodes {
		return false, fmt.Errorf("--nodes: %d, want 2 to %d, or 1 for a service of one process", o.Nodes, maxNodes)
	}
	dir, err := os.MkdirTemp("", "agentledger-demo-")
	if err != nil {
		return false, err
	}
	s := newStage(o, dir)
	err = s.play(ctx)
	if err != nil && ctx.Err() == nil {
		s.writeLogs()
	}
	for _, n := range s.nodes {
		n.kill()
	}
	if err = errors.Join(err, s.database.stop(), os.RemoveAll(dir)); err != nil {
		return false, err
	}
	fmt.Fprintf(o.Out, "\n%s\n", s.counts())
	return s.passedAll(), nil
}

func (s *stage) play(ctx context.Context) (err error) {
	defer func() {
		switch failed := recover().(type) {
		case nil:
		case failure:
			err = failed.error
		default:
			panic(failed)
		}
	}()
	if s.Nodes == 1 {
		s.playDay(ctx)
	} else {
		s.playNodes(ctx)
	}
	return nil
}

// failure is an error that ends a story. The story reads from top to bottom because the functions that tell it do not
// return errors: try and must panic with a failure, which play returns. They must be called by the goroutine of Play.
type failure struct{ error }

func try(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func must[T any](v T, err error) T {
	try(err)
	return v
}

// stage is a running demo.
type stage struct {
	Options
	printer
	dir      string
	secrets  []string    // environment of every node
	operator http.Client // holds the operator's session
	database *database   // nil on the embedded store
	nodes    []*node
	// The agents and the outsider reach the service at url by this transport.
	url       string
	transport http.RoundTripper
}

// platformSecret is the secret of the demo's operator. The service ends with the demo.
const platformSecret = "the platform secret of a demo"

func newStage(o Options, dir string) *stage {
	var key [32]byte
	_, _ = rand.Read(key[:])     // never fails
	jar, _ := cookiejar.New(nil) // never fails
	return &stage{Options: o, printer: printer{out: o.Out}, dir: dir, operator: http.Client{Jar: jar},
		secrets: []string{"AGENTLEDGER_PLATFORM_SECRET=" + platformSecret,
			"AGENTLEDGER_MASTER_KEY=" + base64.StdEncoding.EncodeToString(key[:])}}
}

// openLog opens the file that receives the output of a process, over all its starts.
func (s *stage) openLog(name string) *os.File {
	return must(os.OpenFile(filepath.Join(s.dir, name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600))
}

// maxLog is how many bytes writeLogs writes of each log.
const maxLog = 16 << 10

// writeLogs writes the ends of the logs of all processes.
func (s *stage) writeLogs() {
	files, _ := filepath.Glob(filepath.Join(s.dir, "*.log")) // the pattern is well-formed
	for _, file := range files {
		text, _ := os.ReadFile(file)
		fmt.Fprintf(s.Errors, "The log of %s:\n%s\n", strings.TrimSuffix(filepath.Base(file), ".log"),
			text[max(0, len(text)-maxLog):])
	}
}

// patience bounds each wait for the service.
const patience = time.Minute

// await calls done until it returns true. It returns false if ctx ends or the patience is exhausted.
func await(ctx context.Context, done func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !done() {
		if syncs.Sleep(ctx, 20*time.Millisecond) != nil {
			return false
		}
	}
	return true
}
