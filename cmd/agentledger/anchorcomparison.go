package main

import (
	"context"
	"errors"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/storage"
)

// retryPause is the pause before failed background work is retried.
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
		if syncs.Sleep(ctx, retryPause) != nil {
			return
		}
	}
}

// compareWithAnchors compares the ledgers of the store with the anchors, while the service runs, until it is done or ctx
// ends.
func (s *service) compareWithAnchors(ctx context.Context) {
	s.retryUntilDone(ctx, "ledgers are not compared with the anchors", func() error {
		return s.ledgers.Census(ctx, org.Kind, slugIn)
	})
}

// slugIn returns the slug in an organization's record, or "" if the handle belongs to no organization.
func slugIn(_ id.Tenant, value []byte) (id.Slug, error) {
	if value == nil {
		return "", nil
	}
	names, err := org.NamesOf(storage.Record{Kind: org.Kind, Value: value})
	if errors.Is(err, storage.ErrNotFound) {
		return "", nil
	}
	return names.Slug, err
}
