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

// DamagedChunk is the check of manifests.
var DamagedChunk = damagedChunk

// LastChunk returns where the last chunk of a whole manifest of one block begins.
func LastChunk(b []byte) (at int) {
	for at+wholeChunk(b[at:]) < len(b) {
		at += wholeChunk(b[at:])
	}
	return at
}

// Flush writes what is in memory to tables, and returns when that is done.
func (e *Engine) Flush() error { return e.db.Flush() }
