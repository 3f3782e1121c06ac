package archive

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Drop implements storage.Copier. The tenant's objects are deleted after its data. A record in the service's partition
// lists them, so that another process continues after a crash or while the object store is unavailable.
func (e *Engine) Drop(ctx context.Context, t id.Tenant, mark storage.Record) error {
	e.moving.Lock()
	defer e.moving.Unlock()
	reached, err := e.frontiers.Get(ctx, t, "")
	if err != nil {
		return fmt.Errorf("drop: %w", err)
	}
	if t == id.Service || !reached.Exists() {
		return e.inner.Drop(ctx, t, mark)
	}
	planned, err := e.drops.Get(ctx, id.Service, tenantName(t))
	if err != nil {
		return fmt.Errorf("drop: %w", err)
	}
	planned.Value.Next = max(planned.Value.Next, reached.Value.objects())
	change, err := e.drops.Put(planned)
	if err == nil {
		err = e.inner.Write(ctx, id.Service, []storage.Change{change})
	}
	if err != nil {
		return fmt.Errorf("drop: record its objects: %w", err)
	}
	if err := e.inner.Drop(ctx, t, mark); err != nil {
		return err
	}
	e.mu.Lock()
	delete(e.resumed, t)
	delete(e.moved, t)
	e.mu.Unlock()
	for n := range reached.Value.objects() {
		e.cached.Drop(place{t, n})
	}
	if err := e.deleteObjects(ctx, t); err != nil { // the worker retries
		e.options.Logger.Warn("archive: objects of a dropped organization not deleted yet; retrying", "err", err)
	}
	return nil
}

// deleteObjects deletes the objects of a dropped tenant. If the tenant still exists with its bundles, the drop did not
// happen, and only the record is removed. The caller must hold moving.
func (e *Engine) deleteObjects(ctx context.Context, t id.Tenant) error {
	planned, err := e.drops.Get(ctx, id.Service, tenantName(t))
	if err != nil || !planned.Exists() {
		return err
	}
	reached, err := e.frontiers.Get(ctx, t, "")
	if err != nil {
		return err
	}
	if !reached.Exists() {
		for n := range planned.Value.Next {
			if err := e.options.Objects.Delete(ctx, objectName(place{t, n})); err != nil {
				e.figures.fail("delete")
				return fmt.Errorf("delete object: %w", err)
			}
		}
	}
	return e.inner.Write(ctx, id.Service,
		[]storage.Change{{Kind: kindDropped, Key: planned.Key, If: planned.Version}})
}

// finishDrops deletes the objects of all dropped tenants. It must precede any move, because a tenant that is imported
// again writes objects with the same names.
func (e *Engine) finishDrops(ctx context.Context) error {
	e.moving.Lock()
	defer e.moving.Unlock()
	var failed []error
	found, err := e.inner.Scan(ctx, id.Service, kindDropped, "", "", marksPage)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	for _, r := range found {
		t, err := strconv.ParseUint(r.Key, 16, 64)
		if err == nil {
			err = e.deleteObjects(ctx, id.Tenant(t))
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
