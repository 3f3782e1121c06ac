// Package records reads and writes records whose values are JSON texts.
//
// Invariants:
//
//   - A record that is absent has version 0, and Put writes it on the condition that it
//     still is absent.
//   - A record that was read is written on the condition that its version is still the
//     one that was read.
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

// Versioned is a decoded record.
type Versioned[T any] struct {
	Key     string
	Value   T
	Version uint64 // the record's version; 0: it is absent
}

// Exists reports whether the record is in the store.
func (v Versioned[T]) Exists() bool { return v.Version > 0 }

// Store is the records of one kind. Its methods may be called concurrently.
type Store[T any] struct {
	Records storage.RecordStore
	Kind    storage.Kind
	// Message is the text for clients when a record can't be read, for example "Policies can't be
	// read" (fault.Unavailable). With "" the error of the storage engine is returned as it is.
	Message string
}

// New returns the records of a kind. message is Store.Message.
func New[T any](r storage.RecordStore, kind storage.Kind, message string) Store[T] {
	return Store[T]{Records: r, Kind: kind, Message: message}
}

// Get returns a record, with version 0 when it is absent.
func (s Store[T]) Get(ctx context.Context, t id.Tenant, key string) (Versioned[T], error) {
	r, err := s.Records.Get(ctx, t, s.Kind, key)
	if errors.Is(err, storage.ErrNotFound) {
		return Versioned[T]{Key: key}, nil
	}
	var v Versioned[T]
	if err == nil {
		v, err = Decode[T](r)
	}
	if err != nil {
		return Versioned[T]{Key: key}, s.unreadable(err)
	}
	return v, nil
}

// Put returns the change that writes v under v.Key, to be passed to
// storage.RecordStore.Write or to an append.
func (s Store[T]) Put(v Versioned[T]) (storage.Change, error) {
	value, err := json.Marshal(v.Value)
	if err != nil {
		return storage.Change{}, fmt.Errorf("encode %s: %w", s.Kind, err)
	}
	return storage.Change{Kind: s.Kind, Key: v.Key, Value: value, If: v.Version}, nil
}

// unreadable wraps an error of the storage engine or of the decoder.
func (s Store[T]) unreadable(err error) error {
	if s.Message == "" {
		return fmt.Errorf("read %s: %w", s.Kind, err)
	}
	return Unreadable(s.Message, "read "+string(s.Kind), err)
}

// Unreadable turns an error of the storage engine into fault.Unavailable with a message for clients
// such as "Policies can't be read". step names the step that failed. An engine that takes no writes
// has a message of its own, which stays (storage.ErrReadOnly).
func Unreadable(message, step string, err error) error {
	err = fmt.Errorf("%s: %w", step, err)
	if errors.Is(err, storage.ErrReadOnly) {
		return err
	}
	return &fault.Error{Kind: fault.Unavailable, Code: "unavailable", Message: message, Err: err}
}

// Decode reads the value of a record; storage.ErrCorrupt (wrapped) when it is no JSON
// text of a T.
func Decode[T any](r storage.Record) (v Versioned[T], err error) {
	if err := json.Unmarshal(r.Value, &v.Value); err != nil {
		return v, fmt.Errorf("decode %s: %w: %w", r.Kind, storage.ErrCorrupt, err)
	}
	v.Key, v.Version = r.Key, r.Version
	return v, nil
}

// Check returns storage.ErrCorrupt (wrapped) if the value of a record is no JSON text of a T.
func Check[T any](r storage.Record) error {
	_, err := Decode[T](r)
	return err
}
