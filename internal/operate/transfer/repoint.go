package transfer

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/storage"
)

// repointEntries makes the organization's entries in the service's own partition refer to its new handle. Each record
// is repointed in one step, which can be repeated. The organization's names come last, so that its old handle is
// found until everything is done.
func (s *transition) repointEntries(ctx context.Context) error {
	from, to := s.old.Identity().Tenant, s.new.Identity().Tenant
	service := &records.Writer{Store: s.Store, Tenant: id.Service}
	var names, moved []storage.Change
	for r, err := range storage.PartitionOf(ctx, s.Store, from) {
		if err != nil {
			return err
		}
		changes, found, err := repointRecord(r, from, to)
		if err != nil {
			return err
		}
		if org.IsFounding(r) {
			names = changes
			continue
		}
		if found {
			moved = append(moved, storage.Change{Kind: r.Kind, Key: r.Key, If: storage.AnyVersion})
		}
		if err := service.Put(ctx, changes...); err != nil {
			return err
		}
	}
	if err := service.Flush(ctx); err != nil {
		return err
	}
	old := &records.Writer{Store: s.Store, Tenant: from}
	for _, c := range moved {
		if err := old.Put(ctx, c); err != nil {
			return err
		}
	}
	if err := old.Flush(ctx); err != nil {
		return err
	}
	return s.Store.Write(ctx, id.Service, names)
}

// repointRecord returns the changes that repoint the entries of a record, and reports whether the keys of the entries
// contain the handle. Such a record must not remain in the old partition, because it would count twice. The entries
// of a record that does not move are deleted.
func repointRecord(r storage.Record, from, to id.Tenant) (changes []storage.Change, found bool, err error) {
	before, err := indexEntries(from, r)
	if err != nil {
		return nil, false, err
	}
	after, err := indexEntries(to, r)
	if err != nil {
		return nil, false, err
	}
	for i, b := range before {
		a := after[i]
		if a.Value == nil { // an account, which belongs to no organization
			continue
		}
		if a.Key != b.Key {
			found = true
			changes = append(changes, storage.Change{Kind: b.Kind, Key: b.Key, If: storage.AnyVersion})
		}
		if !belongsToOrganization(r.Kind) {
			continue
		}
		changes = append(changes, storage.Change{Kind: a.Kind, Key: a.Key, Value: a.Value, If: storage.AnyVersion})
	}
	return changes, found, nil
}
