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
	"github.com/agentledger/agentledger/internal/tenant/consoletoken"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// indexEntry is a record of the service's own partition that one of an organization's
// records has there. Its value is known, but for accounts.
type indexEntry struct {
	storage.Record
	Presence
}

// Presence says what it means when a record of the service's own partition is not
// there.
type Presence uint8

const (
	Required Presence = iota // damage
	Optional                 // nothing
	Derived                  // nothing: it is copied as the organization's record has it
	Supplied                 // derived in a store, optional in a copy: older copies may lack it
)

// indexEntries returns the entries of an organization's record in the service's own partition. It asks
// each package that keeps records there (its ServiceRecords). The entries follow from the record and its tenant alone, but
// for accounts, which belong to no organization.
func indexEntries(t id.Tenant, r storage.Record) (all []indexEntry, err error) {
	owners := []struct {
		records func(id.Tenant, storage.Record) ([]storage.Record, error)
		Presence
	}{
		{org.ServiceRecords, Required}, {agent.ServiceRecords, Required}, {account.ServiceRecords, Required},
		{consoletoken.ServiceRecords, Required},
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

// followEntry calls see with each record of the service's own partition that stands
// for r, as find has it. The addresses of accounts follow the accounts.
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

// findStored finds a stand-in in a store.
func findStored(ctx context.Context, store reader, want indexEntry) (storage.Record, bool, error) {
	r, err := store.Get(ctx, id.Service, want.Kind, want.Key)
	switch {
	case errors.Is(err, storage.ErrNotFound) && want.Presence == Optional:
		return r, false, nil
	case errors.Is(err, storage.ErrNotFound) && (want.Presence == Derived || want.Presence == Supplied):
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

// reader reads records of a store.
type reader interface {
	Get(ctx context.Context, t id.Tenant, kind storage.Kind, key string) (storage.Record, error)
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %w", log.ErrDamaged, fmt.Errorf(format, args...))
}
