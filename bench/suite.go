package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/internal/seal"
)

// suite is one run. It must be used by one goroutine.
type suite struct {
	options
	out     io.Writer
	dir     string // removed at the end
	server  string // the product's program
	key     masterKey
	crowd   *crowd    // set by organizations
	library *library  // set by reads
	pg      *database // set by what measures PostgreSQL
}

// masterKey is the key of all data directories here, as a secret and opened.
type masterKey struct {
	secret string
	key    seal.Key
}

// newMasterKey returns a fixed key: everything sealed under it is discarded.
func newMasterKey() (masterKey, error) {
	const secret = "YmVuY2htYXJrcyBvbmx5LCBrZWVwcyBub3RoaW5nISE="
	key, err := seal.KeyFromSecret(secret)
	return masterKey{secret: secret, key: key}, err
}

func newSuite(ctx context.Context, o options, out io.Writer) (*suite, error) {
	dir, err := os.MkdirTemp(o.Dir, "agentledger-bench-")
	if err != nil {
		return nil, err
	}
	s := &suite{options: o, out: out, dir: dir, server: filepath.Join(dir, "agentledger")}
	if s.key, err = newMasterKey(); err == nil {
		err = s.build(ctx)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// build builds the product's server with the product's own go.mod, and as releases are built: without C, so that Go's
// collector has all its memory.
func (s *suite) build(ctx context.Context) (err error) {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", s.server, "./cmd/agentledger")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if build.Dir, err = productDir(ctx); err != nil {
		return err
	}
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the server: %w\n%s", err, text)
	}
	return nil
}

// productDir is the folder of the product's module.
func productDir(ctx context.Context) (string, error) {
	text, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/agentledger/agentledger").Output()
	if err != nil {
		return "", fmt.Errorf("find the product's module (bench is run in its own folder): %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

func (s *suite) close() {
	if s.crowd != nil {
		s.crowd.service.stop()
	}
	if s.library != nil {
		s.library.service.stop()
	}
	if s.pg != nil {
		s.pg.stop()
	}
	os.RemoveAll(s.dir)
}

// measure runs the measures with the given names, or all. A failure does not end the other rounds or measures.
func (s *suite) measure(ctx context.Context, names []string) error {
	var failed []error
	for _, m := range measures() {
		rounds := s.Runs
		switch {
		case m.name == soakMeasure && slices.Contains(names, m.name):
			rounds = 1
		case m.name == soakMeasure || len(names) > 0 && !slices.Contains(names, m.name):
			continue
		}
		for range rounds {
			if err := ctx.Err(); err != nil {
				return errors.Join(append(failed, err)...)
			}
			if err := m.round(s, ctx); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", m.name, err))
			}
		}
	}
	return errors.Join(failed...)
}

// folder makes an empty folder; remove deletes it.
func (s *suite) folder() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp(s.dir, "data-")
	return dir, func() { os.RemoveAll(dir) }, err
}

// limit returns the limit of one load: a warm-up of a quarter of the window, then the window.
func (s *suite) limit() loopLimit { return loopLimit{Warm: s.Window / 4, Time: s.Window} }

// value is one result with its unit.
type value struct {
	number float64
	unit   string
}

// emit prints one line of results; n is the number of operations behind it.
func (s *suite) emit(name string, n int, values ...value) {
	fmt.Fprintf(s.out, "Benchmark%s %d", name, n)
	for _, v := range values {
		fmt.Fprintf(s.out, " %.6g %s", v.number, v.unit)
	}
	fmt.Fprintln(s.out)
	runtime.GC() // so that one measurement does not leave garbage to the next
}

// emitLoad prints the result of a load, whose steps are each some operations, and further values.
func (s *suite) emitLoad(name string, r loopResult, each int, unit string, more ...value) {
	values := []value{{r.Rate() * float64(each), unit}, micros(r.Took, 0.5, "p50-µs"), micros(r.Took, 0.99, "p99-µs")}
	s.emit(name, r.Steps()*each, append(values, more...)...)
}

func micros(l latencies, q float64, unit string) value {
	return value{float64(l.Quantile(q).Nanoseconds()) / 1000, unit}
}
