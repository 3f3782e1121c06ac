package main

import (
	"context"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
)

// comparisonPause is the time after which a census that could not be finished is tried
// again.
const comparisonPause = time.Minute

// compareWithAnchors compares the ledgers of the store with the anchors, beside the serving,
// until that is done or ctx ends.
func (s *service) compareWithAnchors(ctx context.Context) {
	for ctx.Err() == nil {
		err := s.ledgers.Census(ctx, s.lookupSlug)
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			s.watch.logger.Error("ledgers are not compared with the anchors", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(comparisonPause):
		}
	}
}

// lookupSlug returns the slug of an organization, "" when there is none behind the handle.
func (s *service) lookupSlug(ctx context.Context, t id.Tenant) (id.Slug, error) {
	summary, err := s.orgs.Summary(ctx, t)
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	return summary.Slug, err
}
