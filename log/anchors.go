package log

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/storage"
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

// Anchored reports whether a ledger has an anchor that is known to be its latest. It reads the identity of the ledger
// alone. A ledger without one takes no events (ReadOnly), unless it is empty.
func (l *Ledgers) Anchored(ctx context.Context, t id.Tenant) (bool, error) {
	var stored identityRecord
	if err := l.readOwnRecord(ctx, t, kindIdentity, &stored); err != nil {
		return false, storeError("read identity", err)
	}
	_, anchored := l.anchors.Find(stored.Origin)
	return anchored && !l.anchors.Doubtful(stored.Origin), nil
}

// missingTold is how many missing ledgers are named in the operator's log.
const missingTold = 100

// Census compares the ledgers of the store with the anchors, once, and takes about half of
// one core meanwhile. A ledger that has an anchor and is not in the store was removed by a
// rollback: it is named in the operator's log and counted.
//
// The slugs of the ledgers in the store are kept beside the anchors. slugOf reads the slug in an
// organization's record of a kind, "" for none; value is nil where there is no such record.
func (l *Ledgers) Census(ctx context.Context, kind storage.Kind, slugOf slugReader) error {
	missing, began := l.anchors.CompareOrigins(), time.Now()
	asked := storage.SurveyQuestion{Kinds: []storage.Kind{kindIdentity, kind}}
	for found, err := range storage.Survey(ctx, l.store, asked) {
		if err == nil {
			err = l.reportUncounted(ctx, found.Tenant, l.countLedger(found, missing, slugOf, found.Values[kind]))
		}
		if worked := time.Since(began); worked > time.Millisecond {
			_ = syncs.Sleep(ctx, worked)
			began = time.Now()
		}
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return fmt.Errorf("census: %w", err)
		}
	}
	lost, err := l.tellMissing(missing)
	if err != nil {
		return fmt.Errorf("census: %w", err)
	}
	if !lost && !l.anchors.ReadOnly() {
		l.anchors.SettleSlugs() // the census has kept all slugs again
	}
	l.metrics.Missing.Set(float64(missing.CountMissing()))
	return nil
}

type slugReader = func(t id.Tenant, value []byte) (id.Slug, error)

// countLedger marks a ledger as present and keeps its slug. A ledger that can't be read is
// left to the re-verification, which reports it.
func (l *Ledgers) countLedger(found storage.SurveyedLedger, missing *anchor.Comparison, slugOf slugReader, value []byte) error {
	var stored identityRecord
	if err := json.Unmarshal(found.Values[kindIdentity], &stored); err != nil {
		return cmp.Or(found.Err, fmt.Errorf("%w: %s: %w", storage.ErrCorrupt, kindIdentity, err))
	}
	missing.MarkPresent(stored.Origin)
	if _, shown := l.anchors.Find(stored.Origin); !shown || l.anchors.ReadOnly() {
		return nil // it has not arrived yet
	}
	slug, err := slugOf(found.Tenant, value)
	if err != nil || slug == "" {
		return err
	}
	return l.anchors.KeepSlug(slug, stored.Origin)
}

// reportUncounted logs a ledger that could not be read. Only a store that can't be reached ends the census.
func (l *Ledgers) reportUncounted(ctx context.Context, t id.Tenant, err error) error {
	if err == nil || ctx.Err() != nil || !IsDamage(err) {
		return err
	}
	l.logger.Error("ledger not counted", "tenant", t, "err", err)
	return nil
}

// tellMissing logs the missing ledgers. slugLost reports whether one of them is the first of its organization and has a
// slug that is not known.
func (l *Ledgers) tellMissing(missing *anchor.Comparison) (slugLost bool, err error) {
	origins, slugs, err := missing.Missing()
	if err != nil {
		return true, err
	}
	for _, o := range origins {
		if first, _ := o.Split(); o == first && slugs[o] == "" {
			slugLost = true
		}
	}
	for _, o := range origins[:min(len(origins), missingTold)] {
		first, _ := o.Split()
		l.logger.Error("ledger is missing: it was shown, and the store does not have it", "origin", o, "slug", slugs[first])
	}
	if more := len(origins) - missingTold; more > 0 {
		l.logger.Error("more ledgers are missing: fsck names them all", "ledgers", more)
	}
	return slugLost, nil
}

// SlugTaken reports whether a slug is known to belong to another organization than the
// one of an origin, for example to one that the store has lost.
func (l *Ledgers) SlugTaken(slug id.Slug, o id.Origin) bool { return l.anchors.SlugTaken(slug, o) }

// SlugsDoubtful reports whether slugs of organizations that the store has lost may be lost too.
func (l *Ledgers) SlugsDoubtful() bool { return l.anchors.SlugsDoubtful() }
