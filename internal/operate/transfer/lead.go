package transfer

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/storage"
)

// lead makes what stands for the organization in the service's own partition stand
// for its new handle. Each record is led by one step, which can be repeated; the
// organization's names are the last, so that it is the old one that is found until
// all is done.
func (s *succeeding) lead(ctx context.Context) error {
	from, to := s.old.Identity().Tenant, s.heir.Identity().Tenant
	service := &writing{store: s.Store, tenant: id.Service}
	var names, left []storage.Change
	for r, err := range s.Store.Partition(ctx, from) {
		if err != nil {
			return err
		}
		changes, found, err := led(r, from, to)
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
		if err := service.put(ctx, changes...); err != nil {
			return err
		}
	}
	if err := service.flush(ctx); err != nil {
		return err
	}
	old := &writing{store: s.Store, tenant: from}
	for _, c := range left {
		if err := old.put(ctx, c); err != nil {
			return err
		}
	}
	if err := old.flush(ctx); err != nil {
		return err
	}
	return s.Store.Write(ctx, id.Service, names)
}

// led returns what leads from one handle to another what stands for a record, and
// whether that is found by the handle: then the record must not stay behind, where
// it would count as well. What stands for one that does not go over is taken away.
func led(r storage.Record, from, to id.Tenant) (changes []storage.Change, found bool, err error) {
	before, err := standIns(from, r)
	if err != nil {
		return nil, false, err
	}
	after, err := standIns(to, r)
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
		if !goesOver(r.Kind) {
			continue
		}
		changes = append(changes, storage.Change{Kind: a.Kind, Key: a.Key, Value: a.Value, If: storage.AnyVersion})
	}
	return changes, found, nil
}
