package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/agentledger/agentledger/cmd/agentledger/datadir"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/log/audit"
)

// demoCommand shows the main job: a real server on the embedded store, an operator who sets it up over
// HTTP, an agent that works for a day, and an outsider who checks the agent's log.
type demoCommand struct {
	Once   bool   `help:"End after the checks; status 0 only if each of them passed."`
	Listen string `help:"Address to serve on." default:"127.0.0.1:0"`
	config.Logging
}

// Run plays the demo on a data directory of its own, which it removes.
func (c demoCommand) Run(ctx context.Context, out terminal) (err error) {
	dir, err := os.MkdirTemp("", "agentledger-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	settings := c.demoSettings(dir)
	if err := choosePort(&settings); err != nil {
		return err
	}
	running, err := startServer(ctx, settings, config.Logging{LogLevel: "warn"}.NewLogger(out.stderr))
	if err != nil {
		return err
	}
	s := &stage{out: out.stdout, began: time.Now(), dir: dir}
	w, err := playStory(ctx, s, running)
	if err == nil && !c.Once {
		err = s.playOn(ctx, running, w)
	}
	if stopErr := running.stopServer(context.WithoutCancel(ctx)); err == nil {
		err = stopErr
	}
	if err == nil {
		err = s.checkStoppedStore(context.WithoutCancel(ctx), settings)
	}
	return errors.Join(err, s.printVerdict())
}

// choosePort chooses the port of the main listener, which the public URL then has. The host is localhost, because
// browsers have passkeys there without TLS.
func choosePort(c *config.Serve) error {
	l, err := net.Listen("tcp", c.Listen.Listen)
	if err != nil {
		return err
	}
	c.Listen.Listen = l.Addr().String()
	if err := l.Close(); err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(c.Listen.Listen)
	c.PublicURL = "http://localhost:" + port
	return err
}

func (c demoCommand) demoSettings(dir string) config.Serve {
	return config.Serve{
		Store:    config.Store{Data: dir},
		Identity: config.Identity{PublicURL: "http://localhost", Environment: "demo"},
		Limits:   config.Limits{Plans: map[string]uint64{"enterprise": 0}},
		Listen:   config.Listen{Listen: c.Listen, IDListen: "127.0.0.1:0"},
		Logging:  c.Logging,
		Tuning: config.Tuning{
			CacheMiB: 32, MaxEventKiB: 256, ClockAhead: 15 * time.Minute, Drain: time.Second,
			ReverifyPause: time.Minute, RequestTimeout: 20 * time.Second,
		},
	}
}

// stage prints the steps of the demo and counts the checks.
type stage struct {
	out    io.Writer
	began  time.Time
	dir    string
	acme   foundedOrganization
	scenes int
	passed int
	failed int
}

// beginScene begins a part of the story.
func (s *stage) beginScene(title string) {
	s.scenes++
	fmt.Fprintf(s.out, "\n%d. %s\n", s.scenes, title)
}

// printNote tells something that is not a check.
func (s *stage) printNote(format string, args ...any) {
	fmt.Fprintf(s.out, "   "+format+"\n", args...)
}

// countCheck tells whether something holds.
func (s *stage) countCheck(ok bool, format string, args ...any) {
	mark := "ok  "
	if ok {
		s.passed++
	} else {
		s.failed++
		mark = "FAIL"
	}
	fmt.Fprintf(s.out, "   "+mark+" "+format+"\n", args...)
}

// printConclusion prints the conclusion from the checks before it.
func (s *stage) printConclusion(what string) { fmt.Fprintf(s.out, "   => %s\n", what) }

// checkStoppedStore reads the stopped store again from its first event.
func (s *stage) checkStoppedStore(ctx context.Context, settings config.Serve) error {
	s.beginScene("The server has stopped; its files are read again from the first event")
	st, err := datadir.OpenReadOnly(ctx, settings.Store, settings.Tuning,
		config.Logging{LogLevel: "error"}.NewLogger(io.Discard), anchor.OpenReadOnly)
	if err != nil {
		return err
	}
	result, err := audit.Fsck(ctx, st.Engine, st.Keyring, st.Anchors, func(f audit.Finding) { s.printNote("%v", f) })
	if err := errors.Join(err, st.Close()); err != nil {
		return err
	}
	s.countCheck(result.Findings == 0 && result.Events > 0, "fsck: %d ledgers, %d events, %d faults", result.Ledgers,
		result.Events, result.Findings)
	s.printConclusion("what was acknowledged is on disk: entries, records, signatures, tiles and heads fit together")
	return nil
}

// printVerdict is the demo's result.
func (s *stage) printVerdict() error {
	fmt.Fprintf(s.out, "\n%d checks passed, %d failed\n", s.passed, s.failed)
	if s.failed > 0 || s.passed == 0 {
		return errFound
	}
	return nil
}
