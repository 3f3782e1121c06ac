package audit

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// keptErasures is the number of statements that an examiner caches, because neighbouring events are usually erased
// together. Each has at most event.MaxErasedRanges ranges.
const keptErasures = 16

// checkErasure checks that the event named as the eraser of an envelope states the erasure.
func (x *examiner) checkErasure(ctx context.Context, e *storage.Event) error {
	statement, known := x.erasures[e.ErasedBy]
	if !known {
		var err error
		if statement, err = x.readErasure(ctx, e.ErasedBy); err != nil {
			return err
		}
		if x.erasures == nil || len(x.erasures) >= keptErasures {
			x.erasures = make(map[id.Index]*event.Erasure)
		}
		x.erasures[e.ErasedBy] = statement
	}
	if statement == nil || !statement.Covers(e.Index) {
		x.reportIndex(log.Suspect, "envelope", uint64(e.Index),
			fmt.Sprintf("is missing, and event %d does not say that it was erased", e.ErasedBy))
	}
	return nil
}

// readErasure returns the erasure that the event at an index states, or nil if it states none or can't be read.
func (x *examiner) readErasure(ctx context.Context, at id.Index) (*event.Erasure, error) {
	e, err := log.ReadEvent(ctx, x.store, x.identity.Tenant, at, storage.FieldRecord|storage.FieldEnvelope)
	if log.IsDamage(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return x.in.inspectAll(x.identity, []storage.Event{e})[0].erasure, nil
}

// checkErased checks that all events that a statement names are erased. An event without an envelope that no event has
// erased was reported at its own index.
func (x *examiner) checkErased(ctx context.Context, at id.Index, statement *event.Erasure) error {
	for _, r := range statement.Ranges {
		if r.End > at {
			x.reportIndex(log.Suspect, "record", uint64(at), "erases events that are not before it")
			return nil
		}
		for e, err := range x.store.Events(ctx, x.identity.Tenant, r.Begin, r.End, x.parts) {
			if log.IsDamage(err) {
				return nil // reported already
			}
			if err != nil {
				return err
			}
			switch {
			case (e.Envelope != nil || e.Archived && e.ErasedBy == 0) && !event.ReservedAgent(string(e.Agent)):
				x.reportIndex(log.Suspect, "envelope", uint64(e.Index),
					fmt.Sprintf("is there, and event %d says that it was erased", at))
			case e.ErasedBy > at:
				x.reportIndex(log.Suspect, "envelope", uint64(e.Index),
					fmt.Sprintf("was erased by event %d, and not by event %d", at, e.ErasedBy))
			}
		}
	}
	return nil
}
