// Package records reads and writes records whose values are JSON.
//
// What always holds: a record that is not there has version 0, and is written on the
// condition that it still is not; one that was read is written on the condition that
// nobody has changed it since.
package records

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Value is what a record holds and its version in the store, 0 when it is not there.
type Value[T any] struct {
	Value T
	At    uint64
}

// There reports whether the record is in the store.
func (v Value[T]) There() bool { return v.At > 0 }

// Read reads a record, which may be absent.
func Read[T any](ctx context.Context, records storage.RecordStore, t id.Tenant, kind storage.Kind, key string) (v Value[T], err error) {
	r, err := records.Get(ctx, t, kind, key)
	if errors.Is(err, storage.ErrNotFound) {
		return v, nil
	}
	if err != nil {
		return v, fmt.Errorf("read %s: %w", kind, err)
	}
	return Decode[T](r)
}

// Unreadable turns an error of the store into one for clients, by the step that met it:
// fault.Unavailable with a message such as "Policies can't be read", whatever the cause
// is, because nothing can be decided on what can't be read. A store that takes no
// writes says so itself (storage.ErrReadOnly).
func Unreadable(message, step string, err error) error {
	err = fmt.Errorf("%s: %w", step, err)
	if errors.Is(err, storage.ErrReadOnly) {
		return err
	}
	return &fault.Error{Kind: fault.Unavailable, Code: "unavailable", Message: message, Err: err}
}

// Decode reads the value of a record.
func Decode[T any](r storage.Record) (v Value[T], err error) {
	if err := json.Unmarshal(r.Value, &v.Value); err != nil {
		return v, fmt.Errorf("decode %s: %w: %w", r.Kind, storage.ErrCorrupt, err)
	}
	v.At = r.Version
	return v, nil
}

// Change writes the value where it was read, or anew.
func (v Value[T]) Change(kind storage.Kind, key string) (storage.Change, error) {
	value, err := json.Marshal(v.Value)
	if err != nil {
		return storage.Change{}, fmt.Errorf("encode %s: %w", kind, err)
	}
	return storage.Change{Kind: kind, Key: key, Value: value, If: v.At}, nil
}
