package audit

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Limits of a portion of events that are read ahead: the number of events, and the bytes of their documents. The last
// event may exceed the bytes.
const (
	portionEvents = 256
	portionBytes  = 512 << 10
)

// portion is a sequence of events, and the error that ended reading after them.
type portion struct {
	*inspection
	err error
}

// readAhead reads the events [begin, end) and has their documents checked while the caller places earlier events. It
// reads at most as many portions ahead as there are processors, plus two. The channel is closed at the end, or soon
// after ctx ends.
func (x *examiner) readAhead(ctx context.Context, begin, end id.Index) <-chan portion {
	portions := make(chan portion, x.in.processors())
	go func() {
		defer close(portions)
		var events []storage.Event
		bytes := 0
		for e, err := range x.store.Events(ctx, x.identity.Tenant, begin, end, x.parts) {
			if err == nil && e.Archived && isFollowed(e.ActionKind) {
				e, err = log.ReadEvent(ctx, x.store, x.identity.Tenant, e.Index, allParts)
			}
			if err != nil {
				x.handOver(ctx, portions, events, err)
				return
			}
			events, bytes = append(events, e), bytes+len(e.Record)+len(e.Envelope)
			if len(events) < portionEvents && bytes < portionBytes {
				continue
			}
			if !x.handOver(ctx, portions, events, nil) {
				return
			}
			events, bytes = nil, 0
		}
		x.handOver(ctx, portions, events, nil)
	}()
	return portions
}

// allParts are all of an event, also where its texts are archived.
const allParts = storage.FieldRecord | storage.FieldEnvelope

// isFollowed reports whether an examination uses the statements of a kind.
func isFollowed(kind string) bool { return kind == event.KindErasure || kind == log.ClockKind }

// handOver starts the inspection of events and sends them. It returns false if ctx has ended.
func (x *examiner) handOver(ctx context.Context, portions chan<- portion, events []storage.Event, err error) bool {
	select {
	case portions <- portion{x.in.beginInspection(x.identity, events), err}:
		return true
	case <-ctx.Done():
		return false
	}
}

// readPortions examines events up to end, or up to an unreadable one.
func (x *examiner) readPortions(ctx context.Context, end id.Index) error {
	reading, stop := context.WithCancel(ctx)
	portions := x.readAhead(reading, x.tree.Size(), end)
	defer func() {
		stop()
		for range portions { // wait for the reader to end
		}
	}()
	for p := range portions {
		if err := x.placePortion(ctx, p); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if x.tree.Size() < end {
		return fmt.Errorf("%w: event is missing", log.ErrInconsistent)
	}
	return nil
}

// placePortion examines the events of a portion in their order.
func (x *examiner) placePortion(ctx context.Context, p portion) error {
	p.awaitVerdicts()
	for i := range p.events {
		if err := x.examineEvent(ctx, p.events[i], p.verdicts[i]); err != nil {
			return err
		}
	}
	syncs.CountWork(ctx, int64(len(p.events)))
	return p.err
}
