// Package records reads and writes versioned records whose values are JSON. It hides the encoding, the paging of scans and
// the error that clients see if the store cannot be read.
//
// Invariants:
//
//   - Every write is conditional on the version that was read. An absent record has version 0, so Put creates it only if it
//     is still absent.
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
	Version uint64 // version of the stored record, or 0 if it is absent
}

// Exists reports whether the record is stored.
func (v Versioned[T]) Exists() bool { return v.Version > 0 }

// Store accesses the records of one kind. Its methods may be called concurrently.
type Store[T any] struct {
	Records storage.RecordStore
	Kind    storage.Kind
	// Message is the message for clients if a record cannot be read, for example "Policies can't be read"
	// (fault.Unavailable). If empty, the storage engine's error is returned unchanged except for the step that failed.
	Message string
}

// New returns a Store for the records of a kind. message is Store.Message.
func New[T any](r storage.RecordStore, kind storage.Kind, message string) Store[T] {
	return Store[T]{Records: r, Kind: kind, Message: message}
}

// Get returns a record. If it is absent, the result has version 0.
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

// Put returns the change that writes v under v.Key, for storage.RecordStore.Write or an append.
func (s Store[T]) Put(v Versioned[T]) (storage.Change, error) {
	value, err := json.Marshal(v.Value)
	if err != nil {
		return storage.Change{}, fmt.Errorf("encode %s: %w", s.Kind, err)
	}
	return storage.Change{Kind: s.Kind, Key: v.Key, Value: value, If: v.Version}, nil
}

// unreadable wraps an error of the storage engine or the decoder.
func (s Store[T]) unreadable(err error) error {
	if s.Message == "" {
		return fmt.Errorf("read %s: %w", s.Kind, err)
	}
	return Unreadable(s.Message, "read "+string(s.Kind), err)
}

// Unreadable turns an error of the storage engine into fault.Unavailable with a message for clients such as "Policies
// can't be read". step names the step that failed. It keeps storage.ErrReadOnly, which has its own message.
func Unreadable(message, step string, err error) error {
	err = fmt.Errorf("%s: %w", step, err)
	if errors.Is(err, storage.ErrReadOnly) {
		return err
	}
	return &fault.Error{Kind: fault.Unavailable, Code: "unavailable", Message: message, Err: err}
}

// Decode decodes the value of a record. It returns storage.ErrCorrupt (wrapped) if the value is not the JSON of a T.
func Decode[T any](r storage.Record) (v Versioned[T], err error) {
	if err := json.Unmarshal(r.Value, &v.Value); err != nil {
		return v, fmt.Errorf("decode %s: %w: %w", r.Kind, storage.ErrCorrupt, err)
	}
	v.Key, v.Version = r.Key, r.Version
	return v, nil
}

// Check returns storage.ErrCorrupt (wrapped) if the value of a record is not the JSON of a T.
func Check[T any](r storage.Record) error {
	_, err := Decode[T](r)
	return err
}
