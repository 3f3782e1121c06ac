package log

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/tlog"
)

// ReceiveAnchors takes the anchors of another process that shares the store (anchor.Follower, anchor.Folder.Notes). A
// ledger in memory that is not consistent with one of them is frozen. All others are compared when they are read. After
// an error, a ledger that could not be compared is compared by the next call.
func (l *Ledgers) ReceiveAnchors(ctx context.Context, notes []anchor.Note) error {
	differs, err := l.anchors.Receive(notes)
	byOrigin := l.uncompared.Take(differs)
	for _, led := range l.residentAmong(byOrigin) {
		if unread := l.compareShown(ctx, led, byOrigin[led.identity.Origin]); unread != nil {
			l.uncompared.Keep(byOrigin[led.identity.Origin])
			err = errors.Join(err, unread)
		}
	}
	return err
}

// residentAmong returns the ledgers in memory that have one of the origins.
func (l *Ledgers) residentAmong(origins map[id.Origin]tlog.Checkpoint) (found []*ledger) {
	if len(origins) == 0 {
		return nil
	}
	l.slotsMu.RLock()
	defer l.slotsMu.RUnlock()
	for _, r := range l.slots {
		if r.isReady() && r.led != nil && origins[r.led.identity.Origin].Origin != "" {
			found = append(found, r.led)
		}
	}
	return found
}

// compareShown freezes a ledger that does not extend a checkpoint that another process showed. A checkpoint of a
// larger tree is no fault as long as the store has that tree: then the other process owns the ledger, or did.
func (l *Ledgers) compareShown(ctx context.Context, led *ledger, shown tlog.Checkpoint) error {
	s := led.published.Load()
	if s.fault.Level == Frozen {
		return nil
	}
	extends, err := true, error(nil)
	if shown.Size <= s.Size() {
		extends, err = extendsTree(ctx, l, s, shown.Size, shown.Root)
	} else if head, unread := l.store.Head(ctx, led.identity.Tenant); unread == nil {
		extends = head.Size >= shown.Size
	} else {
		err = unread
	}
	switch {
	case IsDamage(err):
		l.recordFault(ctx, led, Frozen, err.Error())
	case err != nil:
		return storeError("compare with a received anchor", err)
	case !extends:
		l.recordFault(ctx, led, Frozen, fmt.Sprintf("the head does not extend the checkpoint that another node showed at size %d", shown.Size))
	}
	return nil
}

// LastShown returns a ledger as it was at its anchor, for readers of a ledger that no process answers for at the
// moment. The process need not own the ledger, which is neither taken over nor kept in memory. ErrNotOwner when the
// store does not have the tree of the anchor, or when there is no anchor here.
func (l *Ledgers) LastShown(ctx context.Context, t id.Tenant) (*State, error) {
	identity, keys, err := l.readIdentity(ctx, t)
	if err != nil {
		return nil, err
	}
	known, err := l.storedFault(ctx, t)
	if err != nil {
		return nil, err
	}
	s, err := l.readState(ctx, newLedger(identity, keys))
	if err != nil {
		return nil, storeError("read last shown state", err)
	}
	shown, found := l.anchors.Find(identity.Origin)
	if !found || shown.Size > s.Size() {
		return nil, fmt.Errorf("read last shown state: %w", ErrNotOwner)
	}
	if s, err = l.stateAtAnchor(ctx, s); err == nil && s.Root() != shown.Root {
		err = ErrNotOwner
	}
	if err != nil {
		return nil, storeError("read last shown state", err)
	}
	s.fault = known
	return s, nil
}
