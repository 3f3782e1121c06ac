package log

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/storage"
)

// Where an acknowledged event may be lost with the store (a fail-over to an
// asynchronous standby), an anchor that lies a second behind does not show the loss
// when the process dies in that second. Options.AnchorFirst then has the anchor
// written before anybody is told of an event: one more sync an append, which appends
// that end at the same time share.

// errNotAnchored: an append is durable, and the anchor that has to come first is not.
var errNotAnchored = errors.New("the anchor could not be written")

// anchorFirst writes the anchors of an append's durable parts, if they have to be
// there before the answer. When they can't be written nobody is told of the parts:
// they are of unknown outcome, which the repair sorts out.
func (l *Ledgers) anchorFirst(f flight, results []error) []error {
	if l.importing || !l.first() {
		return results
	}
	notes := make([][]byte, 0, len(results))
	for i, p := range f.parts[:f.batches] {
		if results[i] == nil {
			p.rekey(l)
			notes = append(notes, p.state.Checkpoint())
		}
	}
	if len(notes) == 0 {
		return results
	}
	err := l.anchors.Put(notes...)
	for i, p := range f.parts[:f.batches] {
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

// anchorLoaded returns what may be shown of a head that was read from the store. If
// its anchor has to be there first, it is written; if nothing beyond the anchor may be
// shown, that is the state at the anchor. known is the fault on record.
func (l *Ledgers) anchorLoaded(ctx context.Context, s *State, known Fault) (*State, error) {
	if l.anchored {
		return l.atAnchor(ctx, s)
	}
	if l.importing || l.anchors.ReadOnly() || s.fault.or(known).Level != Healthy || !l.first() {
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

// rekey gives the state of a durable part the log keys that the part brings.
func (p *part) rekey(l *Ledgers) {
	if keys := l.rekeyed(p); keys != nil {
		p.state.keys = keys
	}
}

func never() bool { return false }
