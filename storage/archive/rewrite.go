package archive

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// marksPage is the number of marks that are read at a time.
const marksPage = 256

// RewriteErased rewrites the objects of a tenant that may contain erased envelopes. After an error, it continues with
// the next object, and returns all errors. Marks of bundles that are not archived stay for the move.
func (e *Engine) RewriteErased(ctx context.Context, t id.Tenant) error {
	reached, err := e.frontiers.Get(ctx, t, "")
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	var failed []error
	if reached.Value.Writing {
		failed = append(failed, e.deleteUnfinished(ctx, t))
	}
	if reached.Value.Next == 0 {
		return errors.Join(failed...)
	}
	for begin := ""; ; {
		marks, err := e.inner.Scan(ctx, t, kindMark, begin, keyOf(reached.Value.Next), marksPage)
		if err != nil {
			return fmt.Errorf("archive: %w", err)
		}
		for _, m := range marks {
			if err := e.rewrite(ctx, t, m); err != nil {
				failed = append(failed, fmt.Errorf("archive: erase in bundle %s: %w", m.Key, err))
			}
			begin = m.Key + "\x00"
		}
		if len(marks) < marksPage || ctx.Err() != nil {
			return errors.Join(failed...)
		}
	}
}

// deleteUnfinished deletes the object of a move that did not write its record, if envelopes of its bundle were erased.
// The mark stays, because the next move depends on it.
func (e *Engine) deleteUnfinished(ctx context.Context, t id.Tenant) error {
	e.moving.Lock()
	defer e.moving.Unlock()
	reached, err := e.frontiers.Get(ctx, t, "")
	if err != nil || !reached.Value.Writing {
		return err
	}
	m, err := e.marks.Get(ctx, t, keyOf(reached.Value.Next))
	if err != nil || !m.Exists() || m.Value.Clean {
		return err
	}
	if err := e.options.Objects.Delete(ctx, objectName(place{t, reached.Value.Next})); err != nil {
		e.figures.fail("erase")
		return fmt.Errorf("archive: delete an unfinished object: %w", err)
	}
	m.Value.Clean = true
	change, err := e.marks.Put(m)
	if err != nil {
		return err
	}
	return e.inner.Write(ctx, t, []storage.Change{change})
}

// rewrite removes the erased envelopes from one object.
func (e *Engine) rewrite(ctx context.Context, t id.Tenant, m storage.Record) error {
	var number uint64
	if _, err := fmt.Sscanf(m.Key, "%d", &number); err != nil {
		return fmt.Errorf("read its mark: %w: %w", storage.ErrCorrupt, err)
	}
	e.moving.Lock()
	defer e.moving.Unlock()
	p := place{t, id.Index(number)}
	record, err := e.bundles.Get(ctx, t, m.Key)
	if err != nil {
		return err
	}
	unmarked := storage.Change{Kind: kindMark, Key: m.Key, If: m.Version}
	if record.Value.Local {
		return e.inner.Write(ctx, t, []storage.Change{unmarked})
	}
	if record.Value, err = e.writeErased(ctx, p, record.Value); err != nil {
		return err
	}
	changed, err := e.bundles.Put(record)
	if err != nil {
		return err
	}
	if err := e.inner.Write(ctx, t, []storage.Change{changed, unmarked}); err != nil {
		return fmt.Errorf("write its record: %w", err)
	}
	e.figures.rewritten.Inc()
	return nil
}

// writeErased replaces an object that contains erased envelopes, and returns the new value of its record.
func (e *Engine) writeErased(ctx context.Context, p place, record stored) (stored, error) {
	defer e.cached.Drop(p)
	texts, o, err := e.loadBundle(ctx, p)
	if err != nil {
		return record, err
	}
	remaining, changed, err := e.dropErased(ctx, texts)
	if err != nil {
		return record, err
	}
	if !changed { // it was already rewritten, and the response or the record was lost
		record.SHA256 = o.sha256
		return record, nil
	}
	data := e.codec.Encode(remaining)
	if err := e.options.Objects.Replace(ctx, objectName(p), data, o.version); err != nil {
		e.figures.fail("erase")
		return record, fmt.Errorf("replace object: %w", err)
	}
	found, _, err := e.readObject(ctx, p, record.Texts)
	if err == nil && !found.Equal(remaining) {
		err = ErrDamaged
	}
	if err != nil {
		e.figures.fail("erase")
		return record, fmt.Errorf("read object back: %w", err)
	}
	return stored{SHA256: sha256.Sum256(data), Bytes: len(data), Texts: record.Texts}, nil
}

// RewriteAll is RewriteErased for all tenants. When it returns nil, no object contains an envelope that was erased
// before the call.
func (e *Engine) RewriteAll(ctx context.Context) error {
	var failed []error
	for t, err := range e.inner.Tenants(ctx) {
		if err != nil {
			return fmt.Errorf("archive: list tenants: %w", err)
		}
		failed = append(failed, e.RewriteErased(ctx, t))
	}
	return errors.Join(failed...)
}

// noteDirty schedules a tenant to be processed again. since is the time of the erasure.
func (e *Engine) noteDirty(t id.Tenant, since time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if before, found := e.dirty[t]; !found || since.Before(before) {
		e.dirty[t] = since
	}
}

// takeDirty returns the tenants with erasures since the last call.
func (e *Engine) takeDirty() map[id.Tenant]time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	taken := e.dirty
	e.dirty = make(map[id.Tenant]time.Time)
	return taken
}

// waiting returns the number of tenants whose erasures wait to be processed, and how long the first has been waiting.
func (e *Engine) waiting() (tenants int, longest time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, since := range e.dirty {
		longest = max(longest, time.Since(since))
	}
	return len(e.dirty), longest
}
