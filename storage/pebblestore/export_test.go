package pebblestore

import (
	"context"

	"github.com/agentledger/agentledger/id"
)

// Compact flushes and compacts everything.
func (e *Engine) Compact(ctx context.Context) error {
	if err := e.db.Flush(); err != nil {
		return err
	}
	return e.db.Compact(ctx, headKey(0), headKey(^id.Tenant(0)), false)
}
