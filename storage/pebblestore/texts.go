package pebblestore

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// DropTexts removes the record and envelope of the stored events [begin, end), at most storage.MaxErased, and returns
// when the removal is durable. All other fields of the events stay. Events without texts are left unchanged.
func (e *Engine) DropTexts(ctx context.Context, t id.Tenant, begin, end id.Index) error {
	if err := e.enterWrite(ctx); err != nil {
		return fmt.Errorf("drop texts: %w", err)
	}
	defer e.endCall()
	c, err := e.applyTextDrop(t, begin, end)
	if unsynced := c.waitDurable(); unsynced != nil {
		err = unsynced
	}
	if err != nil {
		return fmt.Errorf("drop texts: %w", err)
	}
	return nil
}

// applyTextDrop writes the events without their texts, in one commit. Like erasures, it raises the format first.
func (e *Engine) applyTextDrop(t id.Tenant, begin, end id.Index) (*commit, error) {
	e.write.Lock()
	defer e.write.Unlock()
	head, err := e.appliedHead(t)
	if err != nil {
		return e.write.last, err
	}
	if begin > end || end > head.Size || end-begin > storage.MaxErased {
		return e.write.last, fmt.Errorf("events [%d, %d) of %d", begin, end, head.Size)
	}
	var staged []stagedErasure
	for at := begin; at < end; at++ {
		s, archived, err := e.stageTextDrop(t, at)
		if err != nil {
			return e.write.last, fmt.Errorf("event %d: %w", at, err)
		}
		if !archived {
			staged = append(staged, s)
		}
	}
	if len(staged) == 0 {
		return e.write.last, nil
	}
	if err := e.file.raiseFormat(formatArchived); err != nil {
		return e.write.last, err
	}
	b := e.db.NewBatch()
	e.write.writer.putErasures(b, t, staged, formatArchived)
	return e.applyBatch(b, nil)
}

// stageTextDrop returns the event at an index without its texts, or reports that they are already archived.
func (e *Engine) stageTextDrop(t id.Tenant, at id.Index) (s stagedErasure, archived bool, err error) {
	s.index = at
	err = e.readValue(appendIndexKey(nil, t, familyRecord, at), func(v []byte) error {
		var event storage.Event
		together, err := parseEvent(v, storage.FieldRecord|storage.FieldEnvelope, &event)
		if archived = event.Archived; err != nil || archived {
			return err
		}
		event.Record, event.Envelope, event.Archived = nil, nil, true
		s.value, s.apart = appendEvent(nil, &event), !together
		return nil
	})
	if errors.Is(err, storage.ErrNotFound) {
		err = corruptValue("missing record")
	}
	return s, archived, err
}

// ReclaimTexts frees the disk space of the dropped texts of the events [begin, end). It rewrites the tables that
// contain them, and takes time in proportion to their size. Reads and writes continue in the meantime.
func (e *Engine) ReclaimTexts(ctx context.Context, t id.Tenant, begin, end id.Index) error {
	if err := e.enterWrite(ctx); err != nil {
		return fmt.Errorf("reclaim texts: %w", err)
	}
	defer e.endCall()
	for _, f := range []family{familyRecord, familyEnvelope} {
		err := e.db.Compact(ctx, appendIndexKey(nil, t, f, begin), appendIndexKey(nil, t, f, end), false)
		if err != nil {
			return fmt.Errorf("reclaim texts: %w", readError(err))
		}
	}
	return nil
}
