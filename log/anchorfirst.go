package log

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// A store may lose an acknowledged event, for example in a fail-over to an asynchronous
// standby. An anchor that lags by a second does not show the loss when the process dies in
// that second. With Options.AnchorFirst the anchor is written before an event is
// acknowledged. It costs one more sync an append; appends that end together share the sync.

// errNotAnchored: an append is durable, and the anchor that has to come first is not.
var errNotAnchored = errors.New("the anchor could not be written")

// anchorFirst writes the anchors of the durable batches of an append, if Options.AnchorFirst says so. If the anchors
// can't be written, the outcome of the batches counts as unknown, and repairLedger resolves them.
func (l *Ledgers) anchorFirst(f appendInFlight, results []error) []error {
	if l.importing || !l.anchorsFirst() {
		return results
	}
	notes := make([][]byte, 0, len(results))
	for i, p := range f.batches[:f.sent] {
		if results[i] == nil {
			p.takeNewKeys(l)
			notes = append(notes, p.state.Checkpoint())
		}
	}
	if len(notes) == 0 {
		return results
	}
	err := l.anchors.Put(notes...)
	for i, p := range f.batches[:f.sent] {
		switch {
		case results[i] != nil:
		case err != nil:
			results[i] = fmt.Errorf("%w: %w: %w", storage.ErrUnknown, errNotAnchored, err)
		default:
			p.anchored = true
		}
	}
	return results
}

// anchorLoaded returns the state that readers may see of a head that was read from the
// store. It writes the anchor first if Options.AnchorFirst says so. With Options.Anchored
// it returns the state at the anchor. known is the fault on record.
func (l *Ledgers) anchorLoaded(ctx context.Context, s *State, known Fault) (*State, error) {
	if l.anchored {
		return l.stateAtAnchor(ctx, s)
	}
	if l.importing || l.anchors.ReadOnly() || s.fault.worseOf(known).Level != Healthy || !l.anchorsFirst() {
		return s, nil
	}
	if shown, ok := l.anchors.Find(s.identity.Origin); ok && shown.Size >= s.Size() {
		return s, nil
	}
	if err := l.anchors.Put(s.Checkpoint()); err != nil {
		return nil, fmt.Errorf("%w: %w: %w", storage.ErrUnavailable, errNotAnchored, err)
	}
	return s, nil
}

// stateAtAnchor returns the state of a sound ledger as it was at its anchor.
func (l *Ledgers) stateAtAnchor(ctx context.Context, s *State) (*State, error) {
	shown, ok := l.anchors.Find(s.identity.Origin)
	if !ok || s.fault.Level != Healthy || shown.Size >= s.Size() {
		return s, nil
	}
	head, tree := storage.Head{Root: tlog.EmptyRoot(), Last: event.Genesis(s.identity.Origin)}, new(tlog.Builder)
	if shown.Size > 0 {
		var err error
		if head, tree, err = RestoreTreeAt(ctx, l.store, s.identity.Tenant, shown.Size, shown.Root); err != nil {
			return nil, fmt.Errorf("state at the anchor: %w", err)
		}
	}
	head.Epoch, head.ConfigVersion = s.head.Epoch, s.head.ConfigVersion
	return &State{identity: s.identity, keys: s.keys, head: head, tree: tree, used: s.used}, nil
}

// takeNewKeys gives the state of a durable batch the log keys that the batch brings.
func (p *ledgerBatch) takeNewKeys(l *Ledgers) {
	if keys := l.findNewKeys(p); keys != nil {
		p.state.keys = keys
	}
}

func reportsNever() bool { return false }
