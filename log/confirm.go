package log

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
)

// confirmHead compares the head of s, which is not published yet, with its anchor: the head must extend the anchor.
// If it does not, s is frozen and signs the anchor in place of its own head.
//
// A ledger without events gets its first anchor here. A ledger with events and no anchor
// is read-only until an operator adopts a checkpoint, where no other process has its anchor either. The same holds for
// a ledger whose latest anchor may have been in damaged bytes of the journal, even if the ledger has no events.
func (l *Ledgers) confirmHead(ctx context.Context, s *State) error {
	now := id.InstantOf(l.clock())
	if _, shown := l.anchors.Find(s.identity.Origin.Next()); shown {
		defer func() {
			s.fault = s.fault.worseOf(Fault{Level: Frozen, Reason: "its successor was shown", At: now})
		}()
	}
	shown, ok := l.anchors.Find(s.identity.Origin)
	if !ok && s.Size() > 0 && l.fetchAnchors != nil {
		if err := l.fetchAnchors(ctx); err != nil {
			return &fault.Error{Kind: fault.Unavailable, Code: "unavailable", Message: "The anchors of other nodes can't be read", Err: err}
		}
		shown, ok = l.anchors.Find(s.identity.Origin)
	}
	if !ok && s.Size() == 0 && l.anchors.ReadOnly() {
		return nil // no newer head will be shown
	}
	doubtful := l.anchors.Doubtful(s.identity.Origin)
	if doubtful && (!ok || s.Size() == 0 && shown.Size == 0) {
		s.fault = Fault{Level: ReadOnly, Reason: lostAnchor, At: now}
		return nil
	}
	if s.Size() == 0 && shown.Size == 0 {
		err := error(nil)
		if !ok {
			err = l.anchors.Put(s.Checkpoint())
		}
		if err == nil && l.firstAnchor != nil {
			err = l.firstAnchor(ctx, s.Checkpoint())
		}
		return unanchored(err)
	}
	if !ok {
		s.fault = Fault{Level: ReadOnly, Reason: "no anchor confirms the head", At: now}
		return nil
	}
	extends, err := extendsTree(ctx, l, s, shown.Size, shown.Root)
	switch {
	case IsDamage(err):
		s.fault = Fault{Level: Frozen, Reason: err.Error(), At: now}
	case err != nil:
		return err
	case !extends:
		s.fault = Fault{Level: Frozen, Reason: fmt.Sprintf("the head does not extend the checkpoint shown at size %d", shown.Size), At: now}
	case doubtful:
		s.fault = Fault{Level: ReadOnly, Reason: lostAnchor, At: now}
		return nil
	default:
		return nil
	}
	s.anchoredView = &shown
	return nil
}

// lostAnchor is the reason of a ledger that is read-only because its latest anchor may have been in damaged bytes.
const lostAnchor = "its latest anchor may be lost, because anchors.journal is damaged: adopt its latest checkpoint, or all heads with adopt --all-heads"

// unanchored is why a ledger can't begin: its first anchor can't be written. It is nil without an error.
func unanchored(err error) error {
	if err == nil {
		return nil
	}
	return &fault.Error{Kind: fault.Unavailable, Code: "unavailable", Message: "The anchors can't be written", Err: err}
}

// extendsTree reports whether the tree of s had this root at this size.
func extendsTree(ctx context.Context, l *Ledgers, s *State, size id.Index, root id.Hash) (bool, error) {
	if size > s.Size() {
		return false, nil
	}
	was, err := l.Root(ctx, s, size)
	return was == root, err
}

// Adopt makes a checkpoint the anchor of its ledger, after an operator has decided that it is the newest one ever
// shown: it is signed by the log key and the stored head extends it. A ledger that was read-only takes events again.
// An anchor that is newer stays the anchor.
func (l *Ledgers) Adopt(ctx context.Context, t id.Tenant, note []byte) error {
	s, err := l.State(ctx, t)
	if err != nil {
		return err
	}
	c, err := s.keys.openCheckpoint(note)
	if err != nil {
		return fmt.Errorf("adopt checkpoint: %w", err)
	}
	if s.fault.Level == Frozen {
		return fmt.Errorf("adopt checkpoint: the ledger is frozen: %s", s.fault.Reason)
	}
	ok, err := extendsTree(ctx, l, s, c.Size, c.Root)
	if err != nil {
		return fmt.Errorf("adopt checkpoint: %w", err)
	}
	if !ok {
		return fmt.Errorf("adopt checkpoint: the stored ledger (size %d) does not extend it (size %d)", s.Size(), c.Size)
	}
	if err := l.anchors.Put(note); err != nil {
		return err
	}
	if l.anchors.Doubtful(s.identity.Origin) {
		shown, _ := l.anchors.Find(s.identity.Origin)
		return fmt.Errorf("adopt checkpoint: a checkpoint of size %d was shown: adopt one that is not smaller", shown.Size)
	}
	led, err := l.residentLedger(ctx, t)
	if err != nil {
		return err
	}
	stored, err := l.storedFault(ctx, t)
	if err != nil {
		return err
	}
	led.publishMu.Lock()
	defer led.publishMu.Unlock()
	if s := led.published.Load(); s.fault.Level == ReadOnly {
		led.published.Store(s.copyWithFault(stored))
	}
	return nil
}
