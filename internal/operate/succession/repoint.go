package succession

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/serviceindex"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/storage"
)

// repointEntries makes what stands for the organization in the service's own partition stand
// for its new handle. Each record is led by one step, which can be repeated; the
// organization's names are the last, so that it is the old one that is found until
// all is done.
func (s *transition) repointEntries(ctx context.Context) error {
	from, to := s.old.Identity().Tenant, s.new.Identity().Tenant
	service := &records.Writer{Store: s.Store, Tenant: id.Service}
	var names, left []storage.Change
	for r, err := range s.Store.Partition(ctx, from) {
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
			left = append(left, storage.Change{Kind: r.Kind, Key: r.Key, If: storage.AnyVersion})
		}
		if err := service.Put(ctx, changes...); err != nil {
			return err
		}
	}
	if err := service.Flush(ctx); err != nil {
		return err
	}
	old := &records.Writer{Store: s.Store, Tenant: from}
	for _, c := range left {
		if err := old.Put(ctx, c); err != nil {
			return err
		}
	}
	if err := old.Flush(ctx); err != nil {
		return err
	}
	return s.Store.Write(ctx, id.Service, names)
}

// repointRecord returns what leads from one handle to another what stands for a record, and
// whether that is found by the handle: then the record must not stay behind, where
// it would count as well. What stands for one that does not go over is taken away.
func repointRecord(r storage.Record, from, to id.Tenant) (changes []storage.Change, found bool, err error) {
	before, err := serviceindex.EntriesOf(from, r)
	if err != nil {
		return nil, false, err
	}
	after, err := serviceindex.EntriesOf(to, r)
	if err != nil {
		return nil, false, err
	}
	for i, b := range before {
		a := after[i]
		if a.Value == nil { // an account, which is of no organization
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
