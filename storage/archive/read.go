package archive

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/archive/objects"
)

// textFields are the fields that may be archived.
const textFields = storage.FieldRecord | storage.FieldEnvelope

// Events implements storage.Ledgers. It reads several bundles ahead.
func (e *Engine) Events(ctx context.Context, t id.Tenant, begin, end id.Index,
	parts storage.Fields) iter.Seq2[storage.Event, error] {
	events := e.inner.Events(ctx, t, begin, end, parts)
	if parts == 0 || parts&storage.FieldLocal != 0 {
		return events
	}
	return func(yield func(storage.Event, error) bool) {
		ahead := lookahead{engine: e, tenant: t, end: end}
		var held *Texts
		for event, err := range events {
			if err == nil && event.Archived {
				if parts&textFields != 0 {
					held = ahead.advance(ctx, event.Index, held)
				}
				held, err = e.fill(ctx, t, &event, parts, held)
			}
			if err != nil {
				yield(storage.Event{}, err)
				return
			}
			if !yield(event, nil) {
				return
			}
		}
	}
}

// EventsAt implements storage.Ledgers.
func (e *Engine) EventsAt(ctx context.Context, t id.Tenant, at []id.Index,
	parts storage.Fields) ([]storage.Event, error) {
	found, err := e.inner.EventsAt(ctx, t, at, parts)
	if err != nil || parts&storage.FieldLocal != 0 {
		return found, err
	}
	if parts&textFields != 0 {
		e.readTogether(ctx, t, found)
	}
	var held *Texts
	for i := range found {
		if !found[i].Archived {
			continue
		}
		if held, err = e.fill(ctx, t, &found[i], parts, held); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// fill sets the texts of an event whose texts the inner engine has dropped. held is the bundle of the previous event,
// or nil. It returns the bundle of this event.
func (e *Engine) fill(ctx context.Context, t id.Tenant, event *storage.Event, parts storage.Fields,
	held *Texts) (*Texts, error) {
	event.Archived = false
	fields := parts & textFields
	if event.ErasedBy != 0 {
		fields &^= storage.FieldEnvelope
	}
	if fields == 0 {
		return held, nil
	}
	held, err := e.bundleOf(ctx, t, event, held)
	if err != nil {
		return nil, fmt.Errorf("read event %d from the archive: %w", event.Index, err)
	}
	text := &held.Events[event.Index-held.First]
	if fields&storage.FieldRecord != 0 {
		event.Record = cloneBytes(text.Record)
	}
	switch {
	case fields&storage.FieldEnvelope == 0:
	case text.Erased:
		return held, e.readErasure(ctx, t, event)
	default:
		event.Envelope = cloneBytes(text.Envelope)
	}
	return held, nil
}

// bundleOf returns the bundle of an event, which may be held. If a cached bundle has another record for the event,
// another process has dropped the tenant, and the bundle is read again.
func (e *Engine) bundleOf(ctx context.Context, t id.Tenant, event *storage.Event,
	held *Texts) (*Texts, error) {
	p := place{t, event.Index / e.options.width}
	for range 2 {
		if held == nil || held.First != p.number*e.options.width {
			var err error
			if held, err = e.readBundle(ctx, p); err != nil {
				return nil, err
			}
		}
		if sha256.Sum256(held.Events[event.Index-held.First].Record) == event.Entry.Record {
			return held, nil
		}
		e.cached.Drop(p)
		held = nil
	}
	return nil, e.damaged(p, fmt.Sprintf("compare the record of event %d", event.Index), ErrDamaged)
}

// readErasure reads the erasure of an event that was erased between the reads of the event and of its object. If the
// object lacks the envelope of an event that is not erased, it is newer than the store.
func (e *Engine) readErasure(ctx context.Context, t id.Tenant, event *storage.Event) error {
	for now, err := range e.inner.Events(ctx, t, event.Index, event.Index+1, storage.FieldEnvelope) {
		if err != nil {
			return err
		}
		event.ErasedBy = now.ErasedBy
	}
	if event.ErasedBy == 0 {
		return errDamaged(fmt.Errorf("event %d is erased in the archive but not in this store, which is an older state: %w",
			event.Index, storage.ErrCorrupt))
	}
	return nil
}

func cloneBytes(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}

// readsTogether is the number of bundles that one reader reads at a time.
const readsTogether = 8

// readTogether reads the bundles of scattered events into the cache, several at a time.
func (e *Engine) readTogether(ctx context.Context, t id.Tenant, found []storage.Event) {
	var places []place
	for i := range found {
		p := place{t, found[i].Index / e.options.width}
		if found[i].Archived && (len(places) == 0 || places[len(places)-1] != p) {
			places = append(places, p)
		}
	}
	if len(places) < 2 {
		return
	}
	var group errgroup.Group
	group.SetLimit(readsTogether)
	for _, p := range places {
		group.Go(func() error {
			e.readAhead(ctx, p)
			return nil
		})
	}
	_ = group.Wait()
}

// readBundle returns the texts of a bundle, checked. They are shared and must not be modified.
func (e *Engine) readBundle(ctx context.Context, p place) (*Texts, error) {
	return e.cached.Get(ctx, p, func(ctx context.Context) (*Texts, error) {
		texts, _, err := e.loadBundle(ctx, p)
		if err == nil {
			e.figures.reads.Inc()
		}
		return texts, err
	})
}

// object describes an object that was read.
type object struct {
	version string // of the object store
	sha256  id.Hash
}

// loadBundle reads and checks the object of an archived bundle.
func (e *Engine) loadBundle(ctx context.Context, p place) (*Texts, object, error) {
	record, err := e.bundles.Get(ctx, p.tenant, keyOf(p.number))
	if err != nil {
		return nil, object{}, err
	}
	if !record.Exists() {
		return nil, object{}, e.damaged(p, "find its record", storage.ErrNotFound)
	}
	places := e.small
	if !record.Value.isSmall() {
		places = e.large
	}
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-ctx.Done():
		return nil, object{}, fmt.Errorf("too many bundles are being read: %w: %w", storage.ErrUnavailable, ctx.Err())
	}
	texts, o, err := e.readObject(ctx, p, record.Value.Texts)
	switch {
	case errors.Is(err, objects.ErrNotFound), errors.Is(err, objects.ErrTooLarge), errors.Is(err, ErrDamaged):
		return nil, o, e.damaged(p, "read its object", err)
	case err != nil:
		e.figures.fail("read")
		return nil, o, err
	}
	if err := e.checkTexts(ctx, p, texts); err != nil {
		return nil, o, err
	}
	if o.sha256 != record.Value.SHA256 { // it is being rewritten, or the store was restored from an older state
		e.options.Logger.Warn("archive: an object differs from the one that its record names, but has the same event records",
			"object", objectName(p))
	}
	return texts, o, nil
}

// readObject reads and decodes an object whose texts have at most maxTexts bytes.
func (e *Engine) readObject(ctx context.Context, p place, maxTexts int) (*Texts, object, error) {
	width := e.options.width
	data, version, err := e.options.Objects.Read(ctx, objectName(p), maxObject(maxTexts, int(width)))
	if err != nil {
		return nil, object{}, err
	}
	texts, err := e.codec.Decode(data, p.tenant, p.number*width, int(width), maxTexts)
	return texts, object{version, sha256.Sum256(data)}, err
}

// checkTexts compares each record with its entry, and each envelope that was not erased with its record. A missing
// envelope differs from every envelope that a record names.
func (e *Engine) checkTexts(ctx context.Context, p place, texts *Texts) error {
	next := 0
	end := texts.First + id.Index(len(texts.Events))
	for stored, err := range e.inner.Events(ctx, p.tenant, texts.First, end, 0) {
		if err != nil {
			return err
		}
		text := &texts.Events[next]
		if sha256.Sum256(text.Record) != stored.Entry.Record {
			return e.damaged(p, fmt.Sprintf("compare the record of event %d", stored.Index), ErrDamaged)
		}
		if !text.Erased {
			if err := e.options.Check(text.Record, text.Envelope); err != nil {
				return e.damaged(p, fmt.Sprintf("compare the envelope of event %d", stored.Index), err)
			}
		}
		next++
	}
	if next != len(texts.Events) {
		return e.damaged(p, "find its entries", storage.ErrNotFound)
	}
	return nil
}

// damaged logs why a bundle cannot be read, and returns the error for readers.
func (e *Engine) damaged(p place, step string, cause error) error {
	e.figures.fail("damaged")
	e.options.Logger.Error("archive: cannot read a bundle", "object", objectName(p), "step", step, "err", cause)
	return errDamaged(fmt.Errorf("bundle %d, %s: %w", p.number, step, storage.ErrCorrupt))
}

// damagedRetry is the Retry-After for texts whose object is damaged or missing, which the operator must restore.
const damagedRetry = time.Minute

// errDamaged returns the error for readers of texts whose object is damaged or missing.
func errDamaged(cause error) error {
	return &fault.Error{Kind: fault.Unavailable, Code: "archive_damaged", RetryAfter: damagedRetry,
		Message: "The archived text can't be read: its object is damaged or missing", Err: cause}
}

// innerTexts returns the texts of a bundle from the inner engine.
func (e *Engine) innerTexts(ctx context.Context, p place) (*Texts, error) {
	width := e.options.width
	texts := &Texts{Tenant: p.tenant, First: p.number * width, Events: make([]Text, 0, width)}
	for stored, err := range e.inner.Events(ctx, p.tenant, texts.First, texts.First+width, textFields) {
		if err != nil {
			return nil, err
		}
		if stored.Archived {
			return nil, fmt.Errorf("event %d has neither texts nor an object: %w", stored.Index, storage.ErrCorrupt)
		}
		texts.Events = append(texts.Events, Text{
			Record: stored.Record, Envelope: stored.Envelope, Erased: stored.ErasedBy != 0})
	}
	if len(texts.Events) != int(width) {
		return nil, fmt.Errorf("bundle %d has %d events: %w", p.number, len(texts.Events), storage.ErrCorrupt)
	}
	return texts, nil
}

// dropErased returns the texts without the envelopes that the inner engine marks as erased, and reports whether there
// were any.
func (e *Engine) dropErased(ctx context.Context, texts *Texts) (remaining *Texts, changed bool, err error) {
	remaining = &Texts{Tenant: texts.Tenant, First: texts.First, Events: slices.Clone(texts.Events)}
	end := texts.First + id.Index(len(texts.Events))
	for stored, err := range e.inner.Events(ctx, texts.Tenant, texts.First, end, storage.FieldEnvelope) {
		if err != nil {
			return nil, false, err
		}
		if text := &remaining.Events[stored.Index-texts.First]; stored.ErasedBy != 0 && !text.Erased {
			text.Envelope, text.Erased, changed = nil, true, true
		}
	}
	return remaining, changed, nil
}
