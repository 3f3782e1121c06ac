package transfer

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// changesAtOnce is the number of records that are written together.
const changesAtOnce = 512

// importRecords makes the organization's partition equal to the export's, except for the record that makes the
// organization exist, whose change it returns. Both are in the same order, so a partition of any size is compared
// record by record.
func (w *incoming) importRecords(ctx context.Context) (founding []storage.Change, err error) {
	next, stop := iter.Pull2(storage.PartitionOf(ctx, w.Store, w.parsedTenant()))
	defer stop()
	d := &difference{incoming: w, ctx: ctx, next: next}
	if err := d.nextStored(); err != nil {
		return nil, err
	}
	err = w.forEachRecord(ctx, d.putWanted, func(storage.Record) error { return nil })
	for err == nil && d.there {
		err = d.dropStored()
	}
	if err == nil {
		err = d.writeChanges()
	}
	return d.founding, err
}

// difference compares a partition with the records that it should have.
type difference struct {
	*incoming
	ctx      context.Context
	next     func() (storage.Record, error, bool)
	have     storage.Record // next record of the partition
	there    bool           // have is valid
	changes  []storage.Change
	founding []storage.Change
}

// nextStored reads the next record of the partition that is not local to the store.
func (d *difference) nextStored() error {
	for {
		var err error
		d.have, err, d.there = d.next()
		if !d.there || err != nil || !log.Local(d.have.Kind) {
			return err
		}
	}
}

// dropStored deletes a record that is not in the export.
func (d *difference) dropStored() error {
	if org.IsFounding(d.have) {
		return Refusedf("another organization was founded in its place in this store")
	}
	d.changes = append(d.changes, storage.Change{Kind: d.have.Kind, Key: d.have.Key, If: d.have.Version})
	return errors.Join(d.flushIfFull(), d.nextStored())
}

// putWanted makes the partition contain r.
func (d *difference) putWanted(r storage.Record) error {
	for d.there && compareRecords(d.have, r) < 0 {
		if err := d.dropStored(); err != nil {
			return err
		}
	}
	c := storage.Change{Kind: r.Kind, Key: r.Key, Value: r.Value, Version: r.Version}
	if d.there && compareRecords(d.have, r) == 0 {
		if _, err := org.NamesOf(d.have); org.IsFounding(r) && err != nil {
			return Refusedf("another organization was founded in its place in this store: %w", err)
		}
		same := bytes.Equal(d.have.Value, r.Value) && d.have.Version == r.Version
		c.If = d.have.Version
		if err := d.nextStored(); err != nil || same {
			return err
		}
	}
	if org.IsFounding(r) {
		d.founding = []storage.Change{c}
		return nil
	}
	d.changes = append(d.changes, c)
	return d.flushIfFull()
}

func (d *difference) flushIfFull() error {
	if len(d.changes) < changesAtOnce {
		return nil
	}
	return d.writeChanges()
}

func (d *difference) writeChanges() error {
	err := d.Store.Write(d.ctx, d.parsedTenant(), d.changes)
	d.changes = d.changes[:0]
	return AsRefusal(err)
}

// claimEntries checks that the organization's entries in the service's own partition can be written in this store,
// and writes its names. If all is true, it also writes the other entries.
func (w *incoming) claimEntries(ctx context.Context, all bool) error {
	names, err := indexEntries(w.parsedTenant(), w.checked.founding)
	if err != nil {
		return err
	}
	var changes []storage.Change
	write := func() error {
		err := w.Store.Write(ctx, id.Service, changes)
		changes = changes[:0]
		return AsRefusal(err)
	}
	err = w.forEachRecord(ctx, func(storage.Record) error { return nil }, func(r storage.Record) error {
		free, err := w.isFree(ctx, r)
		isName := slices.ContainsFunc(names,
			func(n indexEntry) bool { return compareRecords(n.Record, r) == 0 })
		if err != nil || !free || !all && !isName {
			return err
		}
		if account.IsAccount(r) {
			if r, err = account.ImportedRecord(r, w.parsedTenant()); err != nil {
				return Damagedf("account %s: %w", r.Key, err)
			}
		}
		changes = append(changes, storage.Change{Kind: r.Kind, Key: r.Key, Value: r.Value, Version: r.Version})
		if len(changes) < changesAtOnce {
			return nil
		}
		return write()
	})
	if err != nil {
		return err
	}
	return write()
}

// isFree reports whether a record does not exist yet. It returns an error if another organization has it.
func (w *incoming) isFree(ctx context.Context, r storage.Record) (bool, error) {
	have, err := w.Store.Get(ctx, id.Service, r.Kind, r.Key)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return true, nil
	case err != nil:
		return false, err
	case bytes.Equal(have.Value, r.Value):
		return false, nil
	case account.IsAccount(r):
		return false, checkSameAddress(have, r)
	case account.IsAddress(r): // the message must not contain the address
		return false, Refusedf("a member's address belongs to another account here")
	}
	return false, Refusedf("%s %q belongs to another organization here", r.Kind, r.Key)
}

// checkSameAddress accepts an existing account instead of the exported one if it belongs to the same person.
func checkSameAddress(have, want storage.Record) error {
	a, _, err := account.AddressRecord(have)
	if err != nil {
		return err
	}
	b, _, err := account.AddressRecord(want)
	if err == nil && a.Key != b.Key {
		err = Refusedf("account %s has another address here", want.Key)
	}
	if err == nil && errors.Is(account.CheckHolder(have, want), account.ErrOtherHolder) {
		err = Refusedf("account %s: %w", want.Key, account.ErrOtherHolder)
	}
	return err
}
