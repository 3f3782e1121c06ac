package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/account"
	"github.com/agentledger/agentledger/agent"
	"github.com/agentledger/agentledger/approval"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/org"
	"github.com/agentledger/agentledger/outbox"
	"github.com/agentledger/agentledger/storage"
)

// standIn is a record of the service's own partition that one of an organization's
// records has there. Its value is known, but for accounts.
type standIn struct {
	storage.Record
	optional bool // it may be absent
}

// standIns returns what an organization's record has in the service's own
// partition. Whoever keeps records there is asked here.
func standIns(t id.Tenant, r storage.Record) (all []standIn, err error) {
	owners := []struct {
		records  func(id.Tenant, storage.Record) ([]storage.Record, error)
		optional bool
	}{{org.ServiceRecords, false}, {agent.ServiceRecords, false}, {account.ServiceRecords, false}, {approval.ServiceRecords, true}, {outbox.ServiceRecords, true}}
	for _, o := range owners {
		records, err := o.records(t, r)
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", r.Kind, r.Key, err)
		}
		for i := range records {
			all = append(all, standIn{records[i], o.optional})
		}
	}
	return all, nil
}

// follow calls see with each record of the service's own partition that stands
// for r, as find has it. The addresses of accounts follow the accounts.
func follow(t id.Tenant, r storage.Record, find func(standIn) (storage.Record, bool, error), see func(storage.Record) error) error {
	open, err := standIns(t, r)
	for ; err == nil && len(open) > 0; open = open[1:] {
		var found storage.Record
		var there bool
		if found, there, err = find(open[0]); err != nil || !there {
			continue
		}
		if account.IsAccount(found) {
			var address storage.Record
			address, err = account.AddressRecord(found)
			open = append(open, standIn{Record: address})
		}
		if err == nil {
			err = see(found)
		}
	}
	return err
}

// stored finds a stand-in in a store.
func stored(ctx context.Context, store reader, want standIn) (storage.Record, bool, error) {
	r, err := store.Get(ctx, id.Service, want.Kind, want.Key)
	switch {
	case errors.Is(err, storage.ErrNotFound) && want.optional:
		return r, false, nil
	case errors.Is(err, storage.ErrNotFound):
		return r, false, damaged("service's partition: %s %q is missing", want.Kind, want.Key)
	case errors.Is(err, storage.ErrCorrupt):
		return r, false, damaged("service's partition: %s %q: %w", want.Kind, want.Key, err)
	case err != nil:
		return r, false, err
	case want.Value != nil && !bytes.Equal(r.Value, want.Value):
		return r, false, damaged("service's partition: %s %q is another's", want.Kind, want.Key)
	}
	return r, true, nil
}
