package index

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/follow"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// takeIn is the work of the follower: one step in a ledger's index.
func (x *Index) takeIn(ctx context.Context, b follow.Batch) (follow.Result, error) {
	p := readProgress(b.Position)
	result := follow.Result{Next: b.After, Note: b.Position.Note}
	if b.Position.Note == "" && dueEnd(0, b.State.Size()) == 0 {
		return result, nil // there is no index to write yet
	}
	changes, done, err := x.nextStep(ctx, b.State, &p)
	if err != nil {
		x.metrics.failures.Inc()
		return follow.Result{}, fmt.Errorf("make step of index: %w", err)
	}
	if done {
		return result, nil
	}
	x.metrics.steps.Inc()
	result.Next = follow.Cursor{Origin: b.State.Identity().Origin, Next: p.Current.Position}
	result.Changes, result.More = changes, true
	result.Note, err = p.note()
	return result, err
}

// newGeneration returns an empty generation with a new number.
func newGeneration(p *progress) *generation {
	if p.Next != nil {
		return &generation{Number: p.Next.Number + 1}
	}
	return &generation{Number: p.Current.Number + 1}
}

// nextStep performs the next step in p and returns its changes.
func (x *Index) nextStep(ctx context.Context, s *log.State, p *progress) (changes []storage.Change, done bool,
	err error) {
	if p.Current.Position > s.Size() { // the ledger was restored from a copy, and the index was not
		*p = progress{Current: *newGeneration(p), Dropping: true}
		return nil, false, nil
	}
	if changes, stepped, err := x.columnsStep(ctx, s, p); stepped || err != nil {
		return changes, false, err
	}
	end := dueEnd(p.Current.Position, s.Size())
	if end > p.Current.Position || x.merger.DueLevel(p.Current.Merges, p.Current.wholeBlocks()) > 0 {
		if changes, err = x.takeStep(ctx, s, &p.Current, end); err == nil {
			return changes, false, nil
		}
		if !errors.Is(err, storage.ErrCorrupt) {
			return nil, false, err
		}
		if p.Next == nil { // rebuilt, because the stored index is damaged
			p.Next = newGeneration(p)
			return nil, false, nil
		}
	}
	return x.replaceStep(ctx, s, p)
}

// replaceStep performs the next step of the replacement of a generation.
func (x *Index) replaceStep(ctx context.Context, s *log.State, p *progress) (changes []storage.Change, done bool,
	err error) {
	switch {
	case p.Dropping:
		changes, ended, err := x.dropChanges(ctx, s.Identity().Tenant, p.Current.Number)
		p.Dropping = !ended
		return changes, false, err
	case p.Next == nil:
		return nil, true, nil
	case p.Next.Position >= p.Current.Position:
		p.Current, p.Next, p.Dropping = *p.Next, nil, true
		return nil, false, nil
	}
	changes, err = x.takeStep(ctx, s, p.Next, dueEnd(p.Next.Position, s.Size()))
	return changes, false, err
}

// takeStep indexes the events up to end in a generation, and merges some postings if that is due: four times what a
// chunk adds at a level.
func (x *Index) takeStep(ctx context.Context, s *log.State, g *generation, end id.Index) ([]storage.Change, error) {
	changes, state, err := x.merger.Step(ctx, s.Identity().Tenant, g.Number, g.Merges, g.wholeBlocks())
	if err == nil && end > g.Position {
		taken, newest, failed := x.buildChanges(ctx, s, *g, end)
		changes, err = append(taken, changes...), failed
		x.noteDelay(s, end, newest)
	}
	if err != nil {
		return nil, err
	}
	g.Position, g.Merges = end, state
	return changes, nil
}

// Rebuild rebuilds the index of a ledger. The present index is read until the new one reaches as far. It returns
// fault.Conflict if the index is already being rebuilt.
func (x *Index) Rebuild(ctx context.Context, t id.Tenant) error {
	return x.rebuildGeneration(ctx, t, 0)
}

// rebuildGeneration is Rebuild if a generation is still the current one. 0 means any generation.
func (x *Index) rebuildGeneration(ctx context.Context, t id.Tenant, number uint64) error {
	stored, err := x.follower.Position(ctx, t, "")
	if err != nil {
		return err
	}
	p := readProgress(stored.Value)
	if p.Next != nil || number != 0 && number != p.Current.Number {
		return fault.New(fault.Conflict, "The index is already being rebuilt")
	}
	p.Next = newGeneration(&p)
	note, err := p.note()
	if err != nil {
		return err
	}
	change, err := x.follower.SetNote(stored, note)
	if err == nil {
		err = x.store.Write(ctx, t, []storage.Change{change})
	}
	if errors.Is(err, storage.ErrStale) { // the follower was faster
		return fault.Wrap(fault.Conflict, "The index is being written: try again", err)
	}
	if err == nil {
		x.follower.WakeNow(t, "")
	}
	return err
}
