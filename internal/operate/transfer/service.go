package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/webhook"
	"github.com/agentledger/agentledger/storage"
)

// standIn is a record of the service's own partition that one of an organization's
// records has there. Its value is known, but for accounts.
type standIn struct {
	storage.Record
	presence
}

// presence says what it means when a record of the service's own partition is not
// there.
type presence uint8

const (
	required presence = iota // damage
	optional                 // nothing
	derived                  // nothing: it is copied as the organization's record has it
	supplied                 // derived in a store, optional in a copy: older copies may lack it
)

// standIns returns what an organization's record has in the service's own
// partition. Whoever keeps records there is asked here.
func standIns(t id.Tenant, r storage.Record) (all []standIn, err error) {
	owners := []struct {
		records func(id.Tenant, storage.Record) ([]storage.Record, error)
		presence
	}{
		{org.ServiceRecords, required}, {agent.ServiceRecords, required}, {account.ServiceRecords, required},
		{approval.ServiceRecords, supplied}, {webhook.ServiceRecords, supplied}, {workflow.ServiceRecords, derived},
	}
	for _, o := range owners {
		records, err := o.records(t, r)
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", r.Kind, r.Key, err)
		}
		for i := range records {
			all = append(all, standIn{records[i], o.presence})
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
	case errors.Is(err, storage.ErrNotFound) && want.presence == optional:
		return r, false, nil
	case errors.Is(err, storage.ErrNotFound) && (want.presence == derived || want.presence == supplied):
		want.Version = 1
		return want.Record, true, nil
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
