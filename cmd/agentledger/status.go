package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/operate/status"
	"github.com/agentledger/agentledger/internal/telemetry"
)

// statusCommand says whether a server that runs is well.
type statusCommand struct {
	JSON bool `name:"json" help:"Machine-readable output."`
	runningServer
}

// Run prints the report. It returns errFound when something needs attention.
func (c statusCommand) Run(ctx context.Context, out terminal) error {
	var r status.Report
	err := c.platformCall(http.MethodGet, "/status", nil).callServer(ctx, &r)
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	if c.JSON {
		err = json.MarshalWrite(out.stdout, &r)
	} else {
		err = r.WriteText(out.stdout)
	}
	if err == nil && r.State != status.Good {
		err = errFound
	}
	return err
}

func (s *service) buildStatus(c config.Serve) {
	folders, engine := map[string]string{"data": c.Data, "anchors": c.AnchorsDir()}, "postgresql"
	if c.Storage == "" {
		folders["store"], engine = c.DatabaseDir(), "embedded"
	}
	s.status = status.New(status.Options{Metrics: s.watch.registry, Ledgers: s.ledgers, Orgs: s.orgs,
		Worst: s.auditor.WorstLedgers, Waits: s.witnesses.Waits, CountDue: s.webhooks.CountDue,
		Ready: s.findUnreadiness, Clock: s.clock.Now, Version: telemetry.ProgramVersion(), Engine: engine,
		DataDir: c.Data, Folders: folders, ReadOnly: s.store.ReadOnly})
}
