package follow

import (
	"context"
	"fmt"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// maxPredecessors bounds the search for the ledger of a position.
const maxPredecessors = 64

// findStates returns the ledger of a position and its successors, oldest first. If the ledger no longer exists, it
// returns all, from the oldest one.
func (f *Follower) findStates(ctx context.Context, t id.Tenant, origin id.Origin) ([]*log.State, error) {
	s, err := f.Ledgers.State(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	states := []*log.State{s}
	for s.Identity().Origin != origin && len(states) < maxPredecessors {
		if s, err = f.Ledgers.Predecessor(ctx, s); err != nil {
			return nil, fmt.Errorf("read predecessor: %w", err)
		}
		if s == nil {
			break
		}
		states = append(states, s)
	}
	slices.Reverse(states)
	return states, nil
}

// provableSize returns how many events of a ledger are followed. Events that nothing proves are not.
func provableSize(s *log.State) id.Index {
	if s.Detached() {
		return min(s.Size(), s.Shown().Size)
	}
	return s.Size()
}

// readBatch reads the events after a position.
func (f *Follower) readBatch(ctx context.Context, u unit, p Position) (Batch, error) {
	if f.All != nil {
		s, err := f.Ledgers.State(ctx, u.tenant)
		if err != nil {
			return Batch{}, fmt.Errorf("read ledger: %w", err)
		}
		return Batch{Tenant: u.tenant, Name: u.name, Position: p, State: s, After: p.Cursor}, nil
	}
	states, err := f.findStates(ctx, u.tenant, p.Origin)
	if err != nil {
		return Batch{}, err
	}
	at := p.Cursor
	if origin := states[0].Identity().Origin; origin != at.Origin {
		at = Cursor{Origin: origin}
	}
	for len(states) > 1 && at.Next >= provableSize(states[0]) {
		states = states[1:]
		at = Cursor{Origin: states[0].Identity().Origin}
	}
	b := Batch{Tenant: u.tenant, Name: u.name, Position: p, State: states[len(states)-1], After: at}
	if err := f.readEvents(ctx, states[0], &b); err != nil {
		return Batch{}, err
	}
	b.More = b.After.Next < provableSize(states[0]) || len(states) > 1
	return b, nil
}

// readEvents adds the events of one ledger to a batch.
func (f *Follower) readEvents(ctx context.Context, s *log.State, b *Batch) error {
	end := min(b.After.Next+id.Index(f.MaxEvents), provableSize(s))
	if b.After.Next >= end {
		return nil
	}
	size := 0
	for e, err := range f.Ledgers.Events(ctx, s, b.After.Next, end, storage.FieldRecord|storage.FieldEnvelope) {
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		b.Events = append(b.Events, e)
		b.After.Next = e.Index + 1
		if size += len(e.Record) + len(e.Envelope); size >= f.MaxBytes {
			return nil
		}
	}
	return nil
}
