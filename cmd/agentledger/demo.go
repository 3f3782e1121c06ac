package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/agentledger/agentledger/cmd/agentledger/datadir"
	"github.com/agentledger/agentledger/cmd/agentledger/demo"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/log/audit"
)

// demoCommand shows the main job: a real server on the embedded store, an operator who sets it up over
// HTTP, an agent that works for a day, and an outsider who checks the agent's log.
type demoCommand struct {
	Once   bool   `help:"End after the checks; status 0 only if each of them passed."`
	Listen string `help:"Address to serve on." default:"127.0.0.1:0"`
	Nodes  int    `help:"Serve from 2 to 9 nodes, on a PostgreSQL that the demo starts, and kill one." default:"1"`
	config.Logging
}

// Run plays the demo on a data directory of its own, which it removes.
func (c demoCommand) Run(ctx context.Context, out terminal) (err error) {
	if c.Nodes != 1 {
		return c.playNodes(ctx, out)
	}
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
	s := &stage{Printer: demo.Printer{Out: out.stdout}, dir: dir}
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
	return errors.Join(err, verdictOf(&s.Printer))
}

// playNodes is the demo of several nodes.
func (c demoCommand) playNodes(ctx context.Context, out terminal) error {
	p := &demo.Printer{Out: out.stdout}
	err := demo.PlayNodes(ctx, demo.NodesOptions{Nodes: c.Nodes, Once: c.Once, Printer: p, Errors: out.stderr})
	if err != nil {
		return err
	}
	return verdictOf(p)
}

func verdictOf(p *demo.Printer) error {
	if !p.PrintVerdict() {
		return errFound
	}
	return nil
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

// stage is the demo on its way.
type stage struct {
	demo.Printer
	dir  string
	acme foundedOrganization
}

// checkStoppedStore reads the stopped store again from its first event.
func (s *stage) checkStoppedStore(ctx context.Context, settings config.Serve) error {
	s.BeginScene("The server has stopped; its files are read again from the first event")
	st, err := datadir.OpenReadOnly(ctx, settings.Store, settings.Tuning,
		config.Logging{LogLevel: "error"}.NewLogger(io.Discard), anchor.OpenReadOnly)
	if err != nil {
		return err
	}
	result, err := audit.Fsck(ctx, st.Engine, st.Keyring, st.Anchors, func(f audit.Finding) { s.PrintNote("%v", f) })
	if err := errors.Join(err, st.Close()); err != nil {
		return err
	}
	s.CountCheck(result.Findings == 0 && result.Events > 0, "fsck: %s, %s, %s", textcheck.Count(result.Ledgers, "ledger"),
		textcheck.Count(result.Events, "event"), textcheck.Count(result.Findings, "fault"))
	s.PrintConclusion("what was acknowledged is on disk: entries, records, signatures, tiles and heads fit together")
	return nil
}
