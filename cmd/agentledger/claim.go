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

// claimDatabase refuses to write to the database of a store while other processes do, except as one more node with a
// URL. While the store is open, other processes notice this one. It does nothing for the embedded store, which is locked.
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
