package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/archive/objects"
)

// Numbers of moved bundles of a tenant after which the disk space of their texts is reclaimed: while there are others
// to move, and at the end. Reclaiming rewrites whole tables.
const (
	reclaimWhileMoving = 1024
	reclaimAtEnd       = 64
)

// Move archives all bundles of a tenant that are old enough. After an error, the bundles that were archived stay
// archived, and the next call continues.
func (e *Engine) Move(ctx context.Context, t id.Tenant) error {
	if err := e.finishNewest(ctx, t); err != nil {
		return fmt.Errorf("archive: drop texts: %w", err)
	}
	for {
		began := time.Now()
		moved, err := e.moveNext(ctx, t)
		if err != nil {
			return fmt.Errorf("archive: move: %w", err)
		}
		if !moved {
			return e.reclaim(ctx, t, reclaimAtEnd)
		}
		if err := e.reclaim(ctx, t, reclaimWhileMoving); err != nil {
			return err
		}
		if err := e.rest(ctx, time.Since(began)); err != nil {
			return err
		}
		e.rewriteWoken(ctx)
	}
}

// rest pauses for as long as the last step took, so that half of the time is left for other work.
func (e *Engine) rest(ctx context.Context, worked time.Duration) error {
	if e.options.unpaced {
		return nil
	}
	return syncs.Sleep(ctx, min(worked, time.Second))
}

// finishNewest drops the texts of the latest archived bundle again, once per process: a crash may have happened between
// writing its record and dropping its texts.
func (e *Engine) finishNewest(ctx context.Context, t id.Tenant) error {
	e.moving.Lock()
	defer e.moving.Unlock()
	e.mu.Lock()
	_, done := e.resumed[t]
	e.mu.Unlock()
	if done {
		return nil
	}
	reached, err := e.frontiers.Get(ctx, t, "")
	if err != nil {
		return err
	}
	if reached.Value.Next > 0 {
		if err := e.dropAgain(ctx, place{t, reached.Value.Next - 1}); err != nil {
			return err
		}
	}
	e.mu.Lock()
	e.resumed[t] = struct{}{}
	e.mu.Unlock()
	return nil
}

// dropAgain drops the texts of an archived bundle, if they are still there. They are dropped all together.
func (e *Engine) dropAgain(ctx context.Context, p place) error {
	first := p.number * e.options.width
	for event, err := range e.inner.Events(ctx, p.tenant, first, first+1, storage.FieldColumns) {
		if err != nil || event.Archived {
			return err
		}
	}
	record, err := e.bundles.Get(ctx, p.tenant, keyOf(p.number))
	if err == nil && !record.Exists() {
		err = e.damaged(p, "find its record", storage.ErrNotFound)
	}
	if err != nil {
		return err
	}
	return e.dropTexts(ctx, p, record.Value)
}

// moveNext archives the next bundle of a tenant, if it is old enough.
func (e *Engine) moveNext(ctx context.Context, t id.Tenant) (moved bool, err error) {
	e.moving.Lock()
	defer e.moving.Unlock()
	reached, err := e.frontiers.Get(ctx, t, "")
	if err != nil {
		return false, err
	}
	p := place{t, reached.Value.Next}
	since, due, err := e.isDue(ctx, p)
	if err != nil || !due {
		return false, err
	}
	if err := e.moveBundle(ctx, p, reached); err != nil {
		e.figures.oldest.noteWaiting(since)
		return false, err
	}
	return true, nil
}

// moveBundle archives a bundle. The caller must hold moving.
func (e *Engine) moveBundle(ctx context.Context, p place, reached records.Versioned[frontier]) error {
	if err := e.beginArchive(ctx); err != nil {
		return err
	}
	// Read the mark before the texts: a later erasure changes its version.
	erased, err := e.marks.Get(ctx, p.tenant, keyOf(p.number))
	if err != nil {
		return err
	}
	texts, err := e.innerTexts(ctx, p)
	if err == nil {
		err = e.checkTexts(ctx, p, texts)
	}
	if err != nil {
		return err
	}
	record := stored{Local: true}
	if texts.Bytes() <= MaxTexts {
		if reached, err = e.beginWriting(ctx, p.tenant, reached); err != nil {
			return err
		}
		if record, err = e.writeObject(ctx, p, texts); err != nil {
			return err
		}
	}
	if err := e.recordBundle(ctx, p.tenant, reached, record, erased); err != nil {
		return err
	}
	if err := e.dropTexts(ctx, p, record); err != nil {
		e.mu.Lock()
		delete(e.resumed, p.tenant)
		e.mu.Unlock()
		return err
	}
	e.noteMoved(p, record)
	return nil
}

// isDue reports whether a bundle is full and its last event is old enough, and for how many milliseconds. The bundle
// with the latest event is not due, because a ledger reads that event when it is opened.
func (e *Engine) isDue(ctx context.Context, p place) (since id.Instant, due bool, err error) {
	head, err := e.inner.Head(ctx, p.tenant)
	if errors.Is(err, storage.ErrNotFound) {
		return 0, false, nil
	}
	end := (p.number + 1) * e.options.width
	if err != nil || head.Size < end || head.Size == end && !e.options.newest {
		return 0, false, err
	}
	now := id.Instant(e.options.Clock().Add(-e.options.After).UnixMilli())
	for last, err := range e.inner.Events(ctx, p.tenant, end-1, end, storage.FieldColumns) {
		since = now - last.ReceivedAt
		return since, err == nil && since >= 0, err
	}
	return 0, false, nil
}

// beginWriting records that there may be an object of the next bundle, so that an erasure looks for it.
func (e *Engine) beginWriting(ctx context.Context, t id.Tenant,
	reached records.Versioned[frontier]) (records.Versioned[frontier], error) {
	if reached.Value.Writing {
		return reached, nil
	}
	reached.Value.Writing = true
	change, err := e.frontiers.Put(reached)
	if err == nil {
		err = e.inner.Write(ctx, t, []storage.Change{change})
	}
	if err != nil {
		return reached, fmt.Errorf("record its object: %w", err)
	}
	return e.frontiers.Get(ctx, t, "")
}

// writeObject writes the object of a bundle, unless it exists with the same texts, and reads it back.
func (e *Engine) writeObject(ctx context.Context, p place, texts *Texts) (stored, error) {
	data := e.codec.Encode(texts)
	err := e.options.Objects.Create(ctx, objectName(p), data)
	if errors.Is(err, objects.ErrExists) {
		err = e.replaceOther(ctx, p, texts, data)
	}
	if err != nil {
		e.figures.fail("write")
		return stored{}, fmt.Errorf("write object: %w", err)
	}
	found, o, err := e.readObject(ctx, p, texts.Bytes())
	if err != nil {
		e.figures.fail("read back")
		return stored{}, fmt.Errorf("read object back: %w", err)
	}
	if !found.Equal(texts) {
		e.figures.fail("read back")
		return stored{}, fmt.Errorf("read object back: texts differ: %w", ErrDamaged)
	}
	return stored{SHA256: o.sha256, Bytes: len(data), Texts: texts.Bytes()}, nil
}

// replaceOther replaces an existing object, unless it has the same texts. It may come from an interrupted move, or from
// a later state of a store that was restored.
func (e *Engine) replaceOther(ctx context.Context, p place, texts *Texts, data []byte) error {
	width := int(e.options.width)
	found, version, err := e.options.Objects.Read(ctx, objectName(p), maxObject(MaxTexts, width))
	if err != nil {
		return err
	}
	other, err := e.codec.Decode(found, p.tenant, id.Index(width)*p.number, width, texts.Bytes())
	if err == nil && other.Equal(texts) {
		return nil
	}
	return e.options.Objects.Replace(ctx, objectName(p), data, version)
}

// recordBundle writes the record of a bundle. It returns storage.ErrStale if envelopes of the bundle were erased since
// its texts were read, or if another process has archived it.
func (e *Engine) recordBundle(ctx context.Context, t id.Tenant, reached records.Versioned[frontier], record stored,
	erased records.Versioned[mark]) error {
	key := keyOf(reached.Value.Next)
	created, err := e.bundles.Put(records.Versioned[stored]{Key: key, Value: record})
	if err != nil {
		return err
	}
	reached.Value = frontier{Next: reached.Value.Next + 1}
	next, err := e.frontiers.Put(reached)
	if err != nil {
		return err
	}
	// The texts were read after the mark, so they do not contain the envelopes that it is about.
	unmarked := storage.Change{Kind: kindMark, Key: key, If: erased.Version}
	if err := e.inner.Write(ctx, t, []storage.Change{created, next, unmarked}); err != nil {
		return fmt.Errorf("write its record: %w", err)
	}
	return nil
}

// dropTexts drops the texts of a bundle whose object is recorded.
func (e *Engine) dropTexts(ctx context.Context, p place, record stored) error {
	if record.Local {
		return nil
	}
	first := p.number * e.options.width
	if err := e.inner.DropTexts(ctx, p.tenant, first, first+e.options.width); err != nil {
		return fmt.Errorf("drop texts: %w", err)
	}
	return nil
}

// noteMoved counts a moved bundle.
func (e *Engine) noteMoved(p place, record stored) {
	if record.Local {
		return
	}
	e.figures.bundles.Inc()
	e.figures.bytes.Add(float64(record.Bytes))
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, noted := e.moved[p.tenant]; !noted {
		e.moved[p.tenant] = p.number * e.options.width
	}
}

// reclaim reclaims the disk space of dropped texts, if the engine supports it and there are at least the given number
// of bundles.
func (e *Engine) reclaim(ctx context.Context, t id.Tenant, bundles id.Index) error {
	engine, can := e.options.Engine.(reclaimer)
	e.mu.Lock()
	begin, moved := e.moved[t]
	e.mu.Unlock()
	if !can || !moved {
		return nil
	}
	reached, err := e.frontiers.Get(ctx, t, "")
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	end := reached.Value.Next * e.options.width
	if end-begin < bundles*e.options.width {
		return nil
	}
	if err := engine.ReclaimTexts(ctx, t, begin, end); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	e.mu.Lock()
	delete(e.moved, t)
	e.mu.Unlock()
	return nil
}
