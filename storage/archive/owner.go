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

// ErrOther is returned if the object store is not the archive of this store.
var ErrOther = errors.New("archive: the object store is not the archive of this store")

// ownerName is the name of the object with the identity of the store that an object store belongs to.
const ownerName = "store"

// maxOwner bounds the object, in bytes.
const maxOwner = 1 << 10

// Begun reports whether a store may have archived bundles, so that it cannot be read without its archive.
func Begun(ctx context.Context, r storage.RecordStore) (bool, error) {
	found, err := records.New[owner](r, kindOwner, "").Get(ctx, id.Service, "")
	return found.Value.Begun, err
}

// Forget lets a store without archived bundles use another object store.
func Forget(ctx context.Context, r storage.RecordStore) error {
	owners := records.New[owner](r, kindOwner, "")
	found, err := owners.Get(ctx, id.Service, "")
	if err != nil || !found.Value.Placed || found.Value.Begun {
		return err
	}
	found.Value.Placed = false
	change, err := owners.Put(found)
	if err == nil {
		err = r.Write(ctx, id.Service, []storage.Change{change})
	}
	return err
}

// CheckOwner compares the identity of the store with the one in the object store, and creates both if there is none. It
// returns ErrOther if they differ, or if the object store has lost its identity; it then changes nothing. It returns
// objects.ErrUnsupported if the object store cannot hold an archive. If ReadOnly is set, it creates nothing.
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
	placed, err := e.compareOwner(ctx, found.Value)
	if err != nil {
		return err
	}
	if e.options.ReadOnly && !placed {
		return nil
	}
	if !e.options.ReadOnly {
		if err := objects.Probe(ctx, e.options.Objects); err != nil {
			return fmt.Errorf("archive: %w", err)
		}
		if !found.Exists() {
			if found, err = e.createOwner(ctx); err != nil {
				return fmt.Errorf("archive: create its identity: %w", err)
			}
		}
		if err := e.placeOwner(ctx, found, placed); err != nil {
			return err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.owned, e.started = true, found.Value.Begun
	return nil
}

// createOwner writes the identity of the store, before anything is in the object store.
func (e *Engine) createOwner(ctx context.Context) (records.Versioned[owner], error) {
	change, err := e.owners.Put(records.Versioned[owner]{Value: owner{ID: rand.Text()}})
	if err == nil {
		err = e.inner.Write(ctx, id.Service, []storage.Change{change})
	}
	if err != nil {
		return records.Versioned[owner]{}, err
	}
	return e.owners.Get(ctx, id.Service, "")
}

// compareOwner compares the identity in the object store. placed is false if there is none, which is not an error
// before the archive is in use.
func (e *Engine) compareOwner(ctx context.Context, want owner) (placed bool, err error) {
	name, _, err := e.options.Objects.Read(ctx, ownerName, maxOwner)
	switch {
	case errors.Is(err, objects.ErrNotFound) && !want.inUse():
		return false, nil
	case errors.Is(err, objects.ErrNotFound) && want.Begun:
		return false, fmt.Errorf("%w: it has no object %s. Mount the volume of the archive, or configure the location that has it",
			ErrOther, ownerName)
	case errors.Is(err, objects.ErrNotFound):
		return false, fmt.Errorf("%w: it has no object %s. Mount the volume of the archive, or configure the location that has it. "+
			"No text was archived yet: to use another location, start once without an archive", ErrOther, ownerName)
	case err != nil:
		return false, fmt.Errorf("archive: read %s: %w", ownerName, err)
	case string(name) != want.ID:
		return false, ErrOther
	}
	return true, nil
}

// placeOwner writes the identity to the object store unless it is there, and then records that it is.
func (e *Engine) placeOwner(ctx context.Context, found records.Versioned[owner], placed bool) error {
	if !placed {
		err := e.options.Objects.Create(ctx, ownerName, []byte(found.Value.ID))
		if errors.Is(err, objects.ErrExists) { // written by another node
			_, err = e.compareOwner(ctx, found.Value)
		}
		if err != nil {
			return fmt.Errorf("archive: write %s: %w", ownerName, err)
		}
	}
	if found.Value.inUse() {
		return nil
	}
	found.Value.Placed = true
	change, err := e.owners.Put(found)
	if err == nil {
		err = e.inner.Write(ctx, id.Service, []storage.Change{change})
	}
	if err == nil {
		return nil
	}
	now, readErr := e.owners.Get(ctx, id.Service, "")
	if readErr == nil && now.Value.inUse() { // another node has recorded it
		return nil
	}
	return fmt.Errorf("archive: record that it is in use: %w", err)
}

// beginArchive ensures that the object store belongs to this store, and that the store is not opened without it from
// now on. It must precede the first object.
func (e *Engine) beginArchive(ctx context.Context) error {
	if err := e.CheckOwner(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	started := e.started
	e.mu.Unlock()
	if started {
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
		return fmt.Errorf("record the archive: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.started = true
	return nil
}
