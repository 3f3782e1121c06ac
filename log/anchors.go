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

// ReceiveAnchors adds the anchors of another process that shares the store (anchor.Follower, anchor.Folder.Notes). It
// freezes ledgers in memory that are inconsistent with them. Other ledgers are compared when they are loaded. After an
// error, the next call compares the ledgers that could not be compared.
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

// residentAmong returns the ledgers in memory with one of the origins.
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

// compareShown freezes a ledger that does not extend a checkpoint that another process has shown. A larger tree is no fault
// if the store has it: then the other process owns the ledger now, or owned it.
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

// LastShown returns a ledger as of its anchor, for readers of a ledger whose owner is unavailable. The process need not own
// the ledger, which is neither taken over nor kept in memory. It returns ErrNotOwner if this process has no anchor or the
// store does not have the anchor's tree.
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

// Adopt makes a checkpoint the anchor of its ledger after an operator has decided that it is the latest one ever shown. The
// log key must have signed it, and the stored head must extend it. A ledger that was read-only accepts events again. A
// larger anchor stays the anchor.
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
		return fmt.Errorf("adopt checkpoint: a checkpoint of size %d was shown: adopt one of at least that size", shown.Size)
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

// Anchored reports whether a ledger has an anchor that is known to be its latest. Without one, a ledger with events accepts
// no further events (ReadOnly). Anchored only reads the identity of the ledger.
func (l *Ledgers) Anchored(ctx context.Context, t id.Tenant) (bool, error) {
	var stored identityRecord
	if err := l.readOwnRecord(ctx, t, kindIdentity, &stored); err != nil {
		return false, storeError("read identity", err)
	}
	_, anchored := l.anchors.Find(stored.Origin)
	return anchored && !l.anchors.Doubtful(stored.Origin), nil
}

// maxMissingLogged bounds the missing ledgers that are logged by name.
const maxMissingLogged = 100

// Census compares the ledgers of the store with the anchors, once, using about half of one core. A ledger that has an anchor
// but is not in the store was removed by a rollback: it is logged and counted.
//
// Census also stores the slugs of the ledgers next to the anchors. slugOf returns the slug, or "", from an organization's
// record of the given kind. Its value is nil if there is no such record.
func (l *Ledgers) Census(ctx context.Context, kind storage.Kind, slugOf slugReader) error {
	missing, began := l.anchors.CompareOrigins(), time.Now()
	query := storage.SurveyQuestion{Kinds: []storage.Kind{kindIdentity, kind}}
	for found, err := range storage.Survey(ctx, l.store, query) {
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
		l.anchors.SettleSlugs() // all slugs are stored again
	}
	l.metrics.Missing.Set(float64(missing.CountMissing()))
	return nil
}

type slugReader = func(t id.Tenant, value []byte) (id.Slug, error)

// countLedger marks a ledger as present and stores its slug. A ledger that can't be read is reported by the
// re-verification.
func (l *Ledgers) countLedger(found storage.SurveyedLedger, missing *anchor.Comparison, slugOf slugReader, value []byte) error {
	var stored identityRecord
	if err := json.Unmarshal(found.Values[kindIdentity], &stored); err != nil {
		return cmp.Or(found.Err, fmt.Errorf("%w: %s: %w", storage.ErrCorrupt, kindIdentity, err))
	}
	missing.MarkPresent(stored.Origin)
	if _, shown := l.anchors.Find(stored.Origin); !shown || l.anchors.ReadOnly() {
		return nil // it may still be importing
	}
	slug, err := slugOf(found.Tenant, value)
	if err != nil || slug == "" {
		return err
	}
	return l.anchors.KeepSlug(slug, stored.Origin)
}

// reportUncounted logs a damaged ledger and returns nil, so that only an unavailable store ends the census.
func (l *Ledgers) reportUncounted(ctx context.Context, t id.Tenant, err error) error {
	if err == nil || ctx.Err() != nil || !IsDamage(err) {
		return err
	}
	l.logger.Error("ledger not counted", "tenant", t, "err", err)
	return nil
}

// tellMissing logs the missing ledgers. slugLost reports whether the slug of one of them is unknown.
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
	for _, o := range origins[:min(len(origins), maxMissingLogged)] {
		first, _ := o.Split()
		l.logger.Error("ledger is missing: it was shown, but the store does not have it", "origin", o, "slug", slugs[first])
	}
	if more := len(origins) - maxMissingLogged; more > 0 {
		l.logger.Error("more ledgers are missing: fsck lists all of them", "ledgers", more)
	}
	return slugLost, nil
}

// SlugTaken reports whether a slug belongs to another organization than that of an origin, which the store may have lost.
func (l *Ledgers) SlugTaken(slug id.Slug, o id.Origin) bool { return l.anchors.SlugTaken(slug, o) }

// SlugsDoubtful reports whether the slugs of organizations that the store has lost may be unknown.
func (l *Ledgers) SlugsDoubtful() bool { return l.anchors.SlugsDoubtful() }
