package index

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// advance takes one step in a ledger's index, which is one write or two, and reports whether another
// one is due.
func (x *Index) advance(ctx context.Context, t id.Tenant) (more bool, err error) {
	release, err := x.writing.Lock(ctx, t)
	if err != nil {
		return false, err
	}
	defer release()
	s, err := x.ledgers.State(ctx, t)
	if err != nil {
		return false, err
	}
	if level := s.Fault().Level; level == log.Importing || level == log.Moved {
		return false, nil // the partition is not this store's to write
	}
	if due, known := x.due.Get(t); known && s.Size() < due {
		return false, nil
	}
	p, err := x.readProgress(ctx, t)
	if err != nil {
		return false, err
	}
	if p.Value.Current.Position > s.Size() { // the ledger was brought back from a copy, and the index was not
		old := p.Value.Current.Number
		p.Value = progress{Current: *newGeneration(&p.Value), Dropped: &old}
		return true, x.writeProgress(ctx, t, p, nil)
	}
	changes, done, err := x.nextStep(ctx, s, &p.Value)
	if done {
		x.due.Put(t, p.Value.Current.Position+chunkEvents)
	}
	if err != nil || done {
		return false, err
	}
	return true, x.writeProgress(ctx, t, p, changes)
}

// newGeneration returns an empty generation with a number of its own.
func newGeneration(p *progress) *generation {
	if p.Next != nil {
		return &generation{Number: p.Next.Number + 1}
	}
	return &generation{Number: p.Current.Number + 1}
}

// nextStep makes the next step in p and returns the changes that belong to it.
func (x *Index) nextStep(ctx context.Context, s *log.State, p *progress) (changes []storage.Change, done bool,
	err error) {
	if end := dueEnd(p.Current.Position, s.Size()); end > p.Current.Position {
		changes, err = x.buildChanges(ctx, s, p.Current, end)
		if err == nil {
			p.Current.Position = end
			return changes, false, nil
		}
		if !errors.Is(err, storage.ErrCorrupt) {
			return nil, false, err
		}
		if p.Next == nil { // made anew, because the stored index is damaged
			p.Next = newGeneration(p)
			return nil, false, nil
		}
	}
	return x.replaceStep(ctx, s, p)
}

// replaceStep makes the next step of the replacement of a generation.
func (x *Index) replaceStep(ctx context.Context, s *log.State, p *progress) (changes []storage.Change, done bool,
	err error) {
	switch {
	case p.Dropped != nil:
		ended, err := x.dropRecords(ctx, s.Identity().Tenant, *p.Dropped)
		if err == nil && ended {
			p.Dropped = nil
		}
		return nil, false, err
	case p.Next == nil:
		return nil, true, nil
	case p.Next.Position >= p.Current.Position:
		old := p.Current.Number
		p.Current, p.Next, p.Dropped = *p.Next, nil, &old
		return nil, false, nil
	}
	end := dueEnd(p.Next.Position, s.Size())
	if changes, err = x.buildChanges(ctx, s, *p.Next, end); err == nil {
		p.Next.Position = end
	}
	return changes, false, err
}

// writeProgress writes the progress and the changes that belong to it, on the condition that the
// progress is still the one that was read.
func (x *Index) writeProgress(ctx context.Context, t id.Tenant, p records.Versioned[progress],
	changes []storage.Change) error {
	change, err := x.progressRecords().Put(p)
	if err != nil {
		return err
	}
	if err := x.store.Write(ctx, t, append(changes, change)); err != nil {
		return fmt.Errorf("write index: %w", err)
	}
	x.metrics.steps.Inc()
	return nil
}

// Rebuild makes the index of a ledger anew. The present one is read until the new one reaches as far.
// fault.Conflict while the index is being made anew already.
func (x *Index) Rebuild(ctx context.Context, t id.Tenant) error {
	release, err := x.writing.Lock(ctx, t)
	if err != nil {
		return err
	}
	defer release()
	p, err := x.readProgress(ctx, t)
	if err != nil {
		return err
	}
	if p.Value.Next != nil || p.Value.Dropped != nil {
		return fault.New(fault.Conflict, "The index is being made anew already")
	}
	p.Value.Next = newGeneration(&p.Value)
	err = x.writeProgress(ctx, t, p, nil)
	if errors.Is(err, storage.ErrStale) { // the follower was faster
		return fault.Wrap(fault.Conflict, "The index is being written, ask again", err)
	}
	if err == nil {
		x.due.Delete(t)
		x.queue.enqueue(t)
	}
	return err
}
