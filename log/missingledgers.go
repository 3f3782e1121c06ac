package log

import (
	"context"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wait"
	"github.com/agentledger/agentledger/log/anchor"
)

// missingTold is how many missing ledgers are named in the operator's log.
const missingTold = 100

// Census compares the ledgers of the store with the anchors, once, and takes about half of
// one core meanwhile. A ledger that has an anchor and is not in the store was removed by a
// rollback: it is named in the operator's log and counted.
//
// The slugs of the ledgers in the store are kept beside the anchors. slugOf reads the slug
// of an organization, "" for none; it is asked for each ledger that has an anchor.
func (l *Ledgers) Census(ctx context.Context, slugOf func(context.Context, id.Tenant) (id.Slug, error)) error {
	missing := l.anchors.CompareOrigins()
	for t, err := range l.store.Tenants(ctx) {
		if err != nil {
			return fmt.Errorf("census: list ledgers: %w", err)
		}
		began := time.Now()
		if err := l.countLedger(ctx, t, missing, slugOf); err != nil {
			return fmt.Errorf("census: %w", err)
		}
		_ = wait.For(ctx, time.Since(began))
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("census: %w", err)
		}
	}
	if err := l.tellMissing(missing); err != nil {
		return fmt.Errorf("census: %w", err)
	}
	l.metrics.Missing.Set(float64(missing.CountMissing()))
	return nil
}

// countLedger marks a ledger as present and keeps its slug. A ledger that can't be read is
// left to the re-verification, which reports it.
func (l *Ledgers) countLedger(ctx context.Context, t id.Tenant, missing *anchor.Comparison, slugOf func(context.Context, id.Tenant) (id.Slug, error)) error {
	var stored identityRecord
	if err := l.readOwnRecord(ctx, t, kindIdentity, &stored); err != nil {
		return l.reportUncounted(ctx, t, err)
	}
	missing.MarkPresent(stored.Origin)
	if _, shown := l.anchors.Find(stored.Origin); !shown || l.anchors.ReadOnly() {
		return nil // it has not arrived yet
	}
	slug, err := slugOf(ctx, t)
	if err != nil {
		return l.reportUncounted(ctx, t, err)
	}
	if slug == "" {
		return nil
	}
	return l.anchors.KeepSlug(slug, stored.Origin)
}

// reportUncounted logs a ledger that could not be read. Only a store that can't be reached ends the census.
func (l *Ledgers) reportUncounted(ctx context.Context, t id.Tenant, err error) error {
	if ctx.Err() != nil || !IsDamage(err) {
		return err
	}
	l.logger.Error("ledger not counted", "tenant", t, "err", err)
	return nil
}

// tellMissing names the missing ledgers.
func (l *Ledgers) tellMissing(missing *anchor.Comparison) error {
	origins, slugs, err := missing.Missing()
	if err != nil {
		return err
	}
	for _, o := range origins[:min(len(origins), missingTold)] {
		first, _ := o.Split()
		l.logger.Error("ledger is missing: it was shown, and the store does not have it", "origin", o, "slug", slugs[first])
	}
	if more := len(origins) - missingTold; more > 0 {
		l.logger.Error("more ledgers are missing: fsck names them all", "ledgers", more)
	}
	return nil
}

// SlugTaken reports whether a slug is known to belong to another organization than the
// one of an origin, for example to one that the store has lost.
func (l *Ledgers) SlugTaken(slug id.Slug, o id.Origin) bool { return l.anchors.SlugTaken(slug, o) }
