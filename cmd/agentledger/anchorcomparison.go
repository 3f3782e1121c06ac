package main

import (
	"context"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wait"
)

// retryPause is the time after which background work that failed is tried again.
const retryPause = time.Minute

// retryUntilDone repeats work after a pause until it succeeds or ctx ends. An error of work is
// logged with the message.
func (s *service) retryUntilDone(ctx context.Context, message string, work func() error) {
	for {
		err := work()
		if err == nil || ctx.Err() != nil {
			return
		}
		s.watch.logger.Error(message, "err", err)
		if wait.For(ctx, retryPause) != nil {
			return
		}
	}
}

// compareWithAnchors compares the ledgers of the store with the anchors, beside the serving,
// until that is done or ctx ends.
func (s *service) compareWithAnchors(ctx context.Context) {
	s.retryUntilDone(ctx, "ledgers are not compared with the anchors", func() error {
		return s.ledgers.Census(ctx, s.lookupSlug)
	})
}

// lookupSlug returns the slug of an organization, "" when there is none behind the handle.
func (s *service) lookupSlug(ctx context.Context, t id.Tenant) (id.Slug, error) {
	summary, err := s.orgs.Summary(ctx, t)
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	return summary.Slug, err
}
