package transfer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Drop deletes what an unfinished import of an organization has written, and returns the origins of the deleted logs.
// only is the organization's ID. Entries in the service's own partition are deleted first, so an interrupted Drop can
// be repeated. It returns an error that wraps ErrRefused if the organization has no unfinished import here, or if it
// was here before it moved away, because its old events did not come from an import.
func Drop(ctx context.Context, place Place, only string) ([]id.Origin, error) {
	organization, err := id.ParseOrganization(only)
	if err != nil {
		return nil, Refusedf("use the organization's ID: it has no other name here until it is imported")
	}
	found, others, err := findUnfinished(ctx, place, organization)
	if err != nil {
		return nil, fmt.Errorf("drop: %w", err)
	}
	if len(found) == 0 {
		return nil, Refusedf("there is no unfinished import of %s here; unfinished imports: %s", organization,
			joinedOrNone(others))
	}
	var dropped []id.Origin
	for _, u := range found {
		if err := dropLog(ctx, place, u); err != nil {
			return dropped, fmt.Errorf("drop: %s: %w", u.Identity.Origin, err)
		}
		dropped = append(dropped, u.Identity.Origin)
	}
	return dropped, nil
}

func joinedOrNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// findUnfinished returns the unfinished imports of an organization, and the IDs of other organizations with
// unfinished imports.
func findUnfinished(
	ctx context.Context, place Place, organization id.Organization,
) (found []*log.Unfinished, others []string, err error) {
	for t, err := range place.Store.Tenants(ctx) {
		if err != nil {
			return nil, nil, err
		}
		u, err := log.UnfinishedImport(ctx, place.Store, t)
		switch {
		case err != nil:
			return nil, nil, err
		case u == nil:
		case u.Identity.Organization == organization:
			found = append(found, u)
		default:
			others = append(others, u.Identity.Organization.String())
		}
	}
	return found, others, nil
}

func dropLog(ctx context.Context, place Place, u *log.Unfinished) error {
	t := u.Identity.Tenant
	_, err := place.Store.Get(ctx, t, org.Kind, "")
	if err == nil {
		return Refusedf("it was here before it moved away: finish the import, or leave it as it is")
	}
	if !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	w := &records.Writer{Store: place.Store, Tenant: id.Service}
	for r, err := range storage.PartitionOf(ctx, place.Store, t) {
		if err == nil {
			err = dropEntries(ctx, place.Store, w, t, r)
		}
		if err != nil {
			return err
		}
	}
	if err := w.Flush(ctx); err != nil {
		return err
	}
	copier, err := storage.CopierOf(place.Store)
	if err != nil {
		return err
	}
	return u.Drop(ctx, copier)
}

// dropEntries deletes the existing entries of a record. It keeps accounts, and entries with the same name that belong
// to another organization.
func dropEntries(
	ctx context.Context, store storage.RecordStore, w *records.Writer, t id.Tenant, r storage.Record,
) error {
	all, err := indexEntries(t, r)
	if err != nil {
		return err
	}
	for _, want := range all {
		if want.Value == nil {
			continue
		}
		want.Presence = Optional
		_, there, err := findStored(ctx, store, want)
		switch {
		case errors.Is(err, ErrDamaged): // it belongs to another organization
			continue
		case err != nil:
			return err
		case there:
			if err := w.Put(ctx, storage.Change{Kind: want.Kind, Key: want.Key, If: storage.AnyVersion}); err != nil {
				return err
			}
		}
	}
	return nil
}
