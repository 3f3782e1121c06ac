package pebblestore

import (
	"bytes"
	"slices"

	"github.com/agentledger/agentledger/id"
)

// nameSource are all names of a store in the order of their keys, with those that were applied before it was made.
type nameSource interface {
	SeekGE(key []byte) bool
	Next() bool
	Key() []byte
	Error() error
}

// Sweep reads up to so many names of a ledger, whose keys are [from, to), on from the last one that a sweep read. It
// returns the error of names. Any other one keeps nothing from being read again later.
func (f *nameFilter) Sweep(t id.Tenant, names nameSource, from, to []byte, most int) error {
	p, resets := f.ledgers[t], f.resets // this goroutine alone writes them
	if p.next != nil {
		from = p.next
	}
	more := names.SeekGE(from)
	for ; more && most > 0 && bytes.Compare(names.Key(), to) < 0; most-- {
		f.Add(names.Key())
		more = names.Next()
	}
	if err := names.Error(); err != nil {
		return err
	}
	if f.resets != resets {
		return nil // names that were read before are not in the filter any more
	}
	if more && bytes.Compare(names.Key(), to) < 0 {
		p.next = slices.Clone(names.Key())
	} else {
		p.next, p.whole = nil, true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ledgers[t] = p
	return nil
}
