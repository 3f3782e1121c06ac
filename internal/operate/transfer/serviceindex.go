package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/mail"
	"github.com/agentledger/agentledger/internal/deliver/notify"
	"github.com/agentledger/agentledger/internal/deliver/streamexport"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/apitoken"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/share"
	"github.com/agentledger/agentledger/storage"
)

// indexEntry is the entry of an organization's record in the service's own partition. Its value is known, except for
// accounts.
type indexEntry struct {
	storage.Record
	Presence
}

// Presence describes what a missing entry in the service's own partition means.
type Presence uint8

const (
	Required Presence = iota // it is damage
	Optional                 // it is allowed
	Derived                  // it is allowed, and is rebuilt from the organization's record
	Supplied                 // Derived in a store, Optional in a copy, because older copies may lack it
)

// indexEntries returns the entries of an organization's record in the service's own partition, from the packages that
// own them (ServiceRecords). The entries follow from the record and its tenant alone, except for accounts, which
// belong to no organization.
func indexEntries(t id.Tenant, r storage.Record) (all []indexEntry, err error) {
	owners := []struct {
		records func(id.Tenant, storage.Record) ([]storage.Record, error)
		Presence
	}{
		{org.ServiceRecords, Required}, {agent.ServiceRecords, Required}, {account.ServiceRecords, Required},
		{apitoken.ServiceRecords, Required}, {share.ServiceRecords, Required},
		{approval.ServiceRecords, Supplied}, {webhook.ServiceRecords, Supplied}, {workflow.ServiceRecords, Derived},
		{mail.ServiceRecords, Supplied}, {notify.ServiceRecords, Supplied},
		{streamexport.ServiceRecords, Supplied}, {erasure.ServiceRecords, Supplied},
	}
	for _, o := range owners {
		records, err := o.records(t, r)
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", r.Kind, r.Key, err)
		}
		for i := range records {
			all = append(all, indexEntry{records[i], o.Presence})
		}
	}
	return all, nil
}

// followEntry calls see for each entry of r in the service's own partition that find returns. The address of an
// account follows the account.
func followEntry(
	t id.Tenant, r storage.Record, find func(indexEntry) (storage.Record, bool, error), see func(storage.Record) error,
) error {
	open, err := indexEntries(t, r)
	for ; err == nil && len(open) > 0; open = open[1:] {
		var found storage.Record
		var there bool
		if found, there, err = find(open[0]); err != nil || !there {
			continue
		}
		if account.IsAccount(found) {
			var address storage.Record
			var owned bool
			if address, owned, err = account.AddressRecord(found); owned {
				open = append(open, indexEntry{Record: address})
			}
		}
		if err == nil {
			err = see(found)
		}
	}
	return err
}

// findStored finds an entry in a store.
func findStored(ctx context.Context, store reader, want indexEntry) (storage.Record, bool, error) {
	r, err := store.Get(ctx, id.Service, want.Kind, want.Key)
	switch {
	case errors.Is(err, storage.ErrNotFound) && want.Presence == Optional:
		return r, false, nil
	case errors.Is(err, storage.ErrNotFound) && (want.Presence == Derived || want.Presence == Supplied):
		want.Version = 1
		return want.Record, true, nil
	case errors.Is(err, storage.ErrNotFound):
		return r, false, Damagedf("service's partition: %s %q is missing", want.Kind, want.Key)
	case errors.Is(err, storage.ErrCorrupt):
		return r, false, Damagedf("service's partition: %s %q: %w", want.Kind, want.Key, err)
	case err != nil:
		return r, false, err
	case want.Value != nil && !bytes.Equal(r.Value, want.Value):
		return r, false, Damagedf("service's partition: %s %q belongs to another organization", want.Kind, want.Key)
	}
	return r, true, nil
}

// reader reads records of a store.
type reader interface {
	Get(ctx context.Context, t id.Tenant, kind storage.Kind, key string) (storage.Record, error)
}
