package pebblestore

import (
	"bytes"
	"slices"

	"github.com/agentledger/agentledger/id"
)

// nameSource iterates over the names of a store in key order. It must include all names that were applied before it was
// created.
type nameSource interface {
	SeekGE(key []byte) bool
	Next() bool
	Key() []byte
	Error() error
}

// Sweep reads up to most names of a ledger, whose keys are in [from, to), starting where the ledger's last sweep ended.
// It returns the error of names; a later sweep then reads the same names again.
func (f *nameFilter) Sweep(t id.Tenant, names nameSource, from, to []byte, most int) error {
	p, resets := f.ledgers[t], f.resets // only this goroutine writes them
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
		return nil // the names that were read before are no longer in the filter
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
