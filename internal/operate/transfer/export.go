package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Exporter writes exports of a store to which nothing else writes.
type Exporter struct {
	Place
	Dir        string         // directory of the export; created if missing
	PieceBytes int64          // approximate size of a piece of events; default: 16 MiB
	Report     func(Progress) // called after each step; may be nil
	Clock      func() time.Time
}

// Run exports the organization with the given slug or ID, or all organizations if only is "". If the directory
// contains an export of the same organizations, complete or not, it continues after the last complete piece of events
// of each. It returns ErrDamaged if the exported data is damaged.
func (x *Exporter) Run(ctx context.Context, only string) ([]Organization, error) {
	tenants, err := x.listTenants(ctx, only)
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	if err := x.prepareExports(); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	all := make([]listed, 0, len(tenants))
	done := make([]Organization, 0, len(tenants))
	for i, t := range tenants {
		w := &outgoing{Exporter: x, tenant: t, progress: Progress{Step: "exporting", Number: i + 1, Of: len(tenants)}}
		l, err := w.exportOrganization(ctx)
		if err != nil {
			return done, err
		}
		all, done = append(all, l), append(done, l.Organization)
	}
	slices.SortStableFunc(all,
		func(a, b listed) int { return cmp.Compare(logNumber(a.Origin), logNumber(b.Origin)) })
	if err := writeExport(x.Dir, all, x.Keyring); err != nil {
		return done, fmt.Errorf("export: manifest: %w", err)
	}
	return done, nil
}

// logNumber returns the number of a log among the logs of its organization. Logs are listed and imported after their
// predecessors.
func logNumber(o id.Origin) int {
	_, n := o.Split()
	return n
}

// Retire marks the organizations of a complete export as moved: the store no longer accepts their events. It rejects
// an organization that changed after its export.
func (x *Exporter) Retire(ctx context.Context) error {
	all, err := readExport(x.Dir, x.Keyring)
	for i := 0; err == nil && i < len(all); i++ {
		var m *manifest
		if m, err = readManifest(x.Dir, all[i], x.Keyring); err != nil || m.Ended { // it accepts no events anyway
			continue
		}
		var head storage.Head
		if head, err = x.Store.Head(ctx, m.parsedTenant()); err != nil {
			continue
		}
		if head.Size != m.Size || head.Root != m.Root || head.ConfigVersion != m.ConfigVersion {
			err = Refusedf("%s changed after it was exported: export it again", m.Slug)
			continue
		}
		err = log.Retire(ctx, x.Store, m.parsedTenant(), head)
	}
	if err != nil {
		return fmt.Errorf("retire: %w", err)
	}
	return nil
}

// listTenants returns the organizations to export.
func (x *Exporter) listTenants(ctx context.Context, only string) (all []id.Tenant, err error) {
	for t, err := range x.Store.Tenants(ctx) {
		if err != nil {
			return nil, err
		}
		if only != "" {
			switch names, err := namesOfRecord(ctx, x.Store, t); {
			case errors.Is(err, storage.ErrNotFound),
				err == nil && only != string(names.Slug) && only != names.ID.String():
				continue
			case err != nil:
				return nil, err
			}
		}
		all = append(all, t)
	}
	if len(all) == 0 && only != "" {
		return nil, Refusedf("there is no organization %s here", only)
	}
	return all, nil
}

// namesOfRecord reads the names of an organization.
func namesOfRecord(ctx context.Context, store storage.RecordStore, t id.Tenant) (org.Names, error) {
	r, err := store.Get(ctx, t, org.Kind, "")
	if err != nil {
		return org.Names{}, err
	}
	return org.NamesOf(r)
}

// prepareExports creates the directory, or checks that an earlier export in it can be continued, and deletes the
// manifest, which marks a complete export.
func (x *Exporter) prepareExports() error {
	if x.PieceBytes == 0 {
		x.PieceBytes = 16 << 20
	}
	if x.Report == nil {
		x.Report = func(Progress) {}
	}
	if x.Clock == nil {
		x.Clock = time.Now
	}
	if err := createPrivateDir(x.Dir); err != nil {
		return err
	}
	path := filepath.Join(x.Dir, manifestName)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return x.checkOnlyExports()
	}
	if _, err := readExport(x.Dir, x.Keyring); err != nil {
		return err
	}
	return errors.Join(os.Remove(path), durable.SyncDir(x.Dir))
}

// checkOnlyExports rejects a directory that contains anything else.
func (x *Exporter) checkOnlyExports() error {
	entries, err := os.ReadDir(x.Dir)
	for _, e := range entries {
		if !isOrganizationDir(e.Name()) && e.Name() != filepath.Base(partialPath(manifestName)) {
			return Refusedf("%s is not empty and not an export: it contains %s", x.Dir, e.Name())
		}
	}
	return err
}

// createPrivateDir creates a directory that only its owner can access, or checks that an existing one is private.
func createPrivateDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = Refusedf("%s is accessible to other users: set its mode to 0700", path)
	}
	return err
}
