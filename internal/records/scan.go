package records

import (
	"context"
	"iter"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Range contains the keys [Begin, End), or all keys from Begin if End is empty.
type Range struct{ Begin, End string }

// After returns the range of all keys greater than key, or of all keys if key is empty.
func After(key string) Range { return Range{Begin: nextKey(key)} }

// nextKey returns the smallest key greater than key, or "" if key is empty.
func nextKey(key string) string {
	if key == "" {
		return ""
	}
	return key + "\x00"
}

// All is the page size that Scan uses for page 0.
const All = 256

// Scan yields the records of a kind in ascending order of their keys. It reads page records at a time, or All records
// at a time if page is 0. The sequence ends at the first error.
func Scan(ctx context.Context, store storage.RecordStore, t id.Tenant, kind storage.Kind, r Range,
	page int) iter.Seq2[storage.Record, error] {
	if page <= 0 {
		page = All
	}
	return func(yield func(storage.Record, error) bool) {
		for {
			found, err := store.Scan(ctx, t, kind, r.Begin, r.End, page)
			if err != nil {
				yield(storage.Record{}, err)
				return
			}
			for i := range found {
				if !yield(found[i], nil) {
					return
				}
			}
			if len(found) < page {
				return
			}
			r.Begin = nextKey(found[len(found)-1].Key)
		}
	}
}

// Scan is like the function Scan and yields decoded records.
func (s Store[T]) Scan(ctx context.Context, t id.Tenant, r Range, page int) iter.Seq2[Versioned[T], error] {
	return func(yield func(Versioned[T], error) bool) {
		for record, err := range Scan(ctx, s.Records, t, s.Kind, r, page) {
			var v Versioned[T]
			if err == nil {
				v, err = Decode[T](record)
			}
			if err != nil {
				yield(v, s.unreadable(err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}

// List returns the first limit records of a range. It reads them with one call.
func (s Store[T]) List(ctx context.Context, t id.Tenant, r Range, limit int) ([]Versioned[T], error) {
	found, err := s.Records.Scan(ctx, t, s.Kind, r.Begin, r.End, limit)
	if err != nil {
		return nil, s.unreadable(err)
	}
	list := make([]Versioned[T], len(found))
	for i := range found {
		if list[i], err = Decode[T](found[i]); err != nil {
			return nil, s.unreadable(err)
		}
	}
	return list, nil
}

// digits are the digits of time-ordered IDs, in ascending order (package id).
const digits = "0123456789abcdefghijklmnopqrstuv"

// ReverseKey turns ascending time-ordered IDs into descending keys, so that a scan returns the latest record first. It
// is its own inverse.
func ReverseKey(name string) string {
	prefix, rest, _ := strings.Cut(name, "_")
	return prefix + "_" + strings.Map(func(d rune) rune {
		if at := strings.IndexRune(digits, d); at >= 0 {
			return rune(digits[len(digits)-1-at])
		}
		return d
	}, rest)
}
