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

// changesAtOnce is how many records are written in one step.
const changesAtOnce = 512

// records makes the organization's partition what the export has, but for the
// record that makes it exist: that change is returned. Both come in the same
// order, so that a partition of any size is compared record by record.
func (w *incoming) records(ctx context.Context) (founding []storage.Change, err error) {
	next, stop := iter.Pull2(w.Store.Partition(ctx, w.tenant()))
	defer stop()
	d := &difference{incoming: w, ctx: ctx, next: next}
	if err := d.advance(); err != nil {
		return nil, err
	}
	err = w.inStep(ctx, d.want, func(storage.Record) error { return nil })
	for err == nil && d.there {
		err = d.drop()
	}
	if err == nil {
		err = d.write()
	}
	return d.founding, err
}

// difference goes through a partition beside the records that it is to have.
type difference struct {
	*incoming
	ctx      context.Context
	next     func() (storage.Record, error, bool)
	have     storage.Record // the next one of the partition
	there    bool           // there is one
	changes  []storage.Change
	founding []storage.Change
}

// advance takes the next record of the partition that is not the store's own.
func (d *difference) advance() error {
	for {
		var err error
		d.have, err, d.there = d.next()
		if !d.there || err != nil || !log.Local(d.have.Kind) {
			return err
		}
	}
}

// drop takes a record away that the export does not have.
func (d *difference) drop() error {
	if org.IsFounding(d.have) {
		return refused("another founding took its place in this store")
	}
	d.changes = append(d.changes, storage.Change{Kind: d.have.Kind, Key: d.have.Key, If: d.have.Version})
	return errors.Join(d.flush(), d.advance())
}

// want makes the partition have r at its place.
func (d *difference) want(r storage.Record) error {
	for d.there && compare(d.have, r) < 0 {
		if err := d.drop(); err != nil {
			return err
		}
	}
	c := storage.Change{Kind: r.Kind, Key: r.Key, Value: r.Value, Version: r.Version}
	if d.there && compare(d.have, r) == 0 {
		if _, err := org.NamesOf(d.have); org.IsFounding(r) && err != nil {
			return refused("another founding took its place in this store: %w", err)
		}
		same := bytes.Equal(d.have.Value, r.Value) && d.have.Version == r.Version
		c.If = d.have.Version
		if err := d.advance(); err != nil || same {
			return err
		}
	}
	if org.IsFounding(r) {
		d.founding = []storage.Change{c}
		return nil
	}
	d.changes = append(d.changes, c)
	return d.flush()
}

func (d *difference) flush() error {
	if len(d.changes) < changesAtOnce {
		return nil
	}
	return d.write()
}

func (d *difference) write() error {
	err := d.Store.Write(d.ctx, d.tenant(), d.changes)
	d.changes = d.changes[:0]
	return refusal(err)
}

// claims looks whether what stands for the organization in the service's own
// partition can stand in this one. Its names are claimed at once, all else when
// all is true.
func (w *incoming) claims(ctx context.Context, all bool) error {
	names, err := standIns(w.tenant(), w.checked.founding)
	if err != nil {
		return err
	}
	var changes []storage.Change
	write := func() error {
		err := w.Store.Write(ctx, id.Service, changes)
		changes = changes[:0]
		return refusal(err)
	}
	err = w.inStep(ctx, func(storage.Record) error { return nil }, func(r storage.Record) error {
		free, err := w.free(ctx, r)
		isName := slices.ContainsFunc(names, func(n standIn) bool { return compare(n.Record, r) == 0 })
		if err != nil || !free || !all && !isName {
			return err
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

// free reports whether a record's place is free, and refuses one that another has.
func (w *incoming) free(ctx context.Context, r storage.Record) (bool, error) {
	have, err := w.Store.Get(ctx, id.Service, r.Kind, r.Key)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return true, nil
	case err != nil:
		return false, err
	case bytes.Equal(have.Value, r.Value):
		return false, nil
	case account.IsAccount(r):
		return false, sameAddress(have, r)
	case account.IsAddress(r): // which is nobody's to read
		return false, refused("a member's address belongs to another account here")
	}
	return false, refused("%s %q belongs to another organization here", r.Kind, r.Key)
}

// sameAddress lets an account that is here count in place of the exported one,
// if it is the same person's.
func sameAddress(have, want storage.Record) error {
	a, err := account.AddressRecord(have)
	if err != nil {
		return err
	}
	b, err := account.AddressRecord(want)
	if err == nil && a.Key != b.Key {
		err = refused("account %s has another address here", want.Key)
	}
	return err
}
