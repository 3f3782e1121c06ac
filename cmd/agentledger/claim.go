package main

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/agentledger/agentledger/cmd/agentledger/datadir"
	"github.com/agentledger/agentledger/cmd/agentledger/nodes"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/programversion"
)

// claimDatabase returns an error if other processes write to the database of a store, unless this process is another node
// with a URL. While the store is open, other processes see this one. It does nothing for the embedded store, which is locked.
func claimDatabase(ctx context.Context, c config.Store, url string, s *datadir.Store, logger *slog.Logger) error {
	if s.ReadOnly {
		return nil
	}
	claim, err := nodes.Take(ctx, nodes.ClaimOptions{URL: url, File: filepath.Join(c.AnchorsDir(), "process"),
		Version: programversion.Read().Short(), Key: s.Keyring.Fingerprints()[0], Engine: s.Engine, Logger: logger,
		Conflict: exitBesideOthers(logger)})
	s.Release = claim.Release
	return err
}
