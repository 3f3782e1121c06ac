package main

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/operate/directory"
	"github.com/agentledger/agentledger/publicapi"
)

// buildDirectory makes the service keep a directory in the log of the organization that the settings name. Listings are
// permanently public, so there is no directory unless the operator configures one.
func (s *service) buildDirectory(ctx context.Context, c config.Serve) error {
	if c.Directory == "" {
		return nil
	}
	slug := id.Slug(c.Directory)
	t, err := s.orgs.BySlug(ctx, slug)
	if fault.Is(err, fault.NotFound) {
		return fmt.Errorf("--directory: there is no organization %q: create it first (agentledger init)", slug)
	}
	if err != nil {
		return fmt.Errorf("--directory: %w", err)
	}
	s.directory = directory.New(directory.Options{
		Ledgers: s.ledgers, Store: s.store.Engine, Events: s.events, Tenant: t, Interval: c.DirectoryInterval,
		Keeps: s.node.Keeps(t), Others: s.node.Exchange(cluster.Grown, s.ledgers.Moves),
		Logger: s.watch.logger, Metrics: s.watch.registry,
	})
	s.directoryName = &publicapi.Directory{Slug: slug, Tenant: t, Listings: s.directory}
	return nil
}
