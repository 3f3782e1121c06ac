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

// Exporter writes exports of a store that has no writer.
type Exporter struct {
	Place
	Dir        string         // the export's folder; made when it is not there
	PieceBytes int64          // about how long a piece of events gets; default 16 MiB
	Report     func(Progress) // called after each step; may be nil
	Clock      func() time.Time
}

// Run exports the organization of that slug or id, or all when it is "". In a
// folder with an export of the same organizations, whole or not, it goes on behind
// the last whole piece of events of each. ErrDamaged when something that is
// exported is not whole.
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
		func(a, b listed) int { return cmp.Compare(numberOfPiece(a.Origin), numberOfPiece(b.Origin)) })
	if err := writeExport(x.Dir, all, x.Keyring); err != nil {
		return done, fmt.Errorf("export: manifest: %w", err)
	}
	return done, nil
}

// numberOfPiece is the place of a log in its line. Logs are listed, and arrive, after those
// that they succeed.
func numberOfPiece(o id.Origin) int {
	_, n := o.Split()
	return n
}

// Retire marks the organizations of a whole export as moved: the store takes no more of their
// events. It refuses an organization that changed after its export.
func (x *Exporter) Retire(ctx context.Context) error {
	all, err := readExport(x.Dir, x.Keyring)
	for i := 0; err == nil && i < len(all); i++ {
		var m *manifest
		if m, err = readManifest(x.Dir, all[i], x.Keyring); err != nil || m.Ended { // which takes none anyway
			continue
		}
		var head storage.Head
		if head, err = x.Store.Head(ctx, m.parsedTenant()); err != nil {
			continue
		}
		if head.Size != m.Size || head.Root != m.Root || head.ConfigVersion != m.ConfigVersion {
			err = Refusedf("%s was written since it was exported: export it again", m.Slug)
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

// prepareExports makes the folder, or checks that an earlier export in it can be continued, and
// deletes the mark of a whole export.
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

// checkOnlyExports refuses a folder in which there is something else.
func (x *Exporter) checkOnlyExports() error {
	entries, err := os.ReadDir(x.Dir)
	for _, e := range entries {
		if !isOrganizationDir(e.Name()) && e.Name() != filepath.Base(partialPath(manifestName)) {
			return Refusedf("%s is not empty and no export: %s lies in it", x.Dir, e.Name())
		}
	}
	return err
}

// createPrivateDir makes a folder that only its owner can look into, or checks that it
// is one.
func createPrivateDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = Refusedf("%s may be read by others than its owner: chmod 700 it", path)
	}
	return err
}
