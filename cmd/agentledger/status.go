package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/operate/status"
	"github.com/agentledger/agentledger/internal/programversion"
)

// statusCommand reports the health of a running server, or of the ledger of one organization.
type statusCommand struct {
	Slug string `help:"Slug or ID of one organization. Default: the whole service." type:"slugorid"`
	JSON bool   `name:"json" help:"Machine-readable output."`
	runningServer
}

// Run prints the report. It returns errFound if something needs attention.
func (c statusCommand) Run(ctx context.Context, out terminal) error {
	var report status.Printed = new(status.Report)
	path := "/status"
	if c.Slug != "" {
		report, path = new(status.Organization), "/organizations/"+url.PathEscape(c.Slug)+"/status"
	}
	err := c.platformCall(http.MethodGet, path, nil).callServer(ctx, report)
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	if err = status.Print(out.stdout, report, c.JSON); err == nil && !report.IsGood() {
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
		Behind: s.exporter.FurthestBehind, AnchorSizes: s.store.Anchors, Cosignatures: s.witnesses, Nodes: s.node.Status,
		Ready: s.findUnreadiness, Clock: s.clock.Now, Version: programversion.Read().Short(), Engine: engine,
		DataDir: c.Data, Folders: folders, ReadOnly: s.store.ReadOnly})
}
