package archive

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/archive/objects"
)

// ErrOther: the object store is the archive of another store, or none of this one.
var ErrOther = errors.New("archive: the object store is not the archive of this store")

// ownerName is the object that says whose archive an object store is.
const ownerName = "store"

// maxOwner bounds the object, in bytes.
const maxOwner = 1 << 10

// Begun reports whether a store may have archived bundles, so that it can't be read without its archive.
func Begun(ctx context.Context, r storage.RecordStore) (bool, error) {
	found, err := records.New[owner](r, kindOwner, "").Get(ctx, id.Service, "")
	return found.Value.Begun, err
}

// CheckOwner compares the identity of the store with that in the object store, and makes both where there is none.
// ErrOther when they differ. objects.ErrUnsupported when the object store can't hold an archive. With ReadOnly it
// makes nothing.
func (e *Engine) CheckOwner(ctx context.Context) error {
	e.mu.Lock()
	owned := e.owned
	e.mu.Unlock()
	if owned {
		return nil
	}
	found, err := e.owners.Get(ctx, id.Service, "")
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	if e.options.ReadOnly && !found.Exists() {
		return nil
	}
	if !e.options.ReadOnly {
		if err := objects.Probe(ctx, e.options.Objects); err != nil {
			return fmt.Errorf("archive: %w", err)
		}
	}
	if !found.Exists() {
		if found, err = e.makeOwner(ctx); err != nil {
			return fmt.Errorf("archive: make its identity: %w", err)
		}
	}
	if err := e.compareOwner(ctx, found.Value); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.owned, e.begun = true, found.Value.Begun
	return nil
}

// makeOwner writes the identity of the store, before anything is in the object store.
func (e *Engine) makeOwner(ctx context.Context) (records.Versioned[owner], error) {
	change, err := e.owners.Put(records.Versioned[owner]{Value: owner{ID: rand.Text()}})
	if err == nil {
		err = e.inner.Write(ctx, id.Service, []storage.Change{change})
	}
	if err != nil {
		return records.Versioned[owner]{}, err
	}
	return e.owners.Get(ctx, id.Service, "")
}

// compareOwner compares the identity in the object store. It is made there as long as no bundle was archived.
func (e *Engine) compareOwner(ctx context.Context, want owner) error {
	name, _, err := e.options.Objects.Read(ctx, ownerName, maxOwner)
	if errors.Is(err, objects.ErrNotFound) && !want.Begun && !e.options.ReadOnly {
		if err = e.options.Objects.Create(ctx, ownerName, []byte(want.ID)); err == nil {
			return nil
		}
		if errors.Is(err, objects.ErrExists) {
			name, _, err = e.options.Objects.Read(ctx, ownerName, maxOwner)
		}
	}
	switch {
	case errors.Is(err, objects.ErrNotFound):
		return fmt.Errorf("%w: it has no object %s", ErrOther, ownerName)
	case err != nil:
		return fmt.Errorf("archive: read %s: %w", ownerName, err)
	case string(name) != want.ID:
		return ErrOther
	}
	return nil
}

// beginArchive makes sure that the object store is this store's, and that the store is not opened without it from
// now on. It comes before the first object.
func (e *Engine) beginArchive(ctx context.Context) error {
	if err := e.CheckOwner(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	begun := e.begun
	e.mu.Unlock()
	if begun {
		return nil
	}
	found, err := e.owners.Get(ctx, id.Service, "")
	if err != nil {
		return err
	}
	found.Value.Begun = true
	change, err := e.owners.Put(found)
	if err == nil {
		err = e.inner.Write(ctx, id.Service, []storage.Change{change})
	}
	if err != nil {
		return fmt.Errorf("note the archive: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.begun = true
	return nil
}
