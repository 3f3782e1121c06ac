package log

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/storage"
)

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
