package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Importer imports the organizations of an export into a store. Nothing else may use the store at the same time.
type Importer struct {
	Place                 // Run closes the anchors
	Dir    string         // directory of the export
	Sealed []seal.Record  // every kind of record that contains private keys
	Reopen bool           // allows reopening an organization that was moved away from here and did not continue elsewhere
	Report func(Progress) // called after each step; may be nil

	// Unauthenticated skips the authenticators. Whoever could write to the export may then have replaced passwords,
	// keys of agents and policies in it.
	Unauthenticated bool
}

// Arrived is the result of one organization's import.
type Arrived struct {
	Organization `json:",inline"`
	Before       id.Index `json:"before"` // events that were already here
	There        bool     `json:"there"`  // the complete organization was already here and open; nothing was done
}

// Run imports the organization with the given slug or ID, or all organizations if only is "". If an organization is
// already here, complete and identical, that is not an error. It returns ErrDamaged if the export is damaged, and
// ErrRefused if it cannot be imported here.
func (i *Importer) Run(ctx context.Context, only string) ([]Arrived, error) {
	if i.Report == nil {
		i.Report = func(Progress) {}
	}
	manifests, err := i.readManifests(only)
	if err != nil {
		return nil, fmt.Errorf("import: %w", errors.Join(err, i.Anchors.Close()))
	}
	ledgers, err := log.Open(ctx, log.Options{
		Store:     i.Store,
		Keyring:   i.Keyring,
		Anchors:   i.Anchors,
		Logger:    i.Logger,
		Importing: true,
	})
	if err != nil {
		return nil, err
	}
	var done []Arrived
	for _, line := range groupLines(manifests) {
		var all []*incoming
		for n, m := range line {
			all = append(all, &incoming{Importer: i, manifest: m, ledgers: ledgers, progress: Progress{
				Organization: m.Slug, Number: len(done) + n + 1, Of: len(manifests), Size: m.Size,
			}})
		}
		arrived, failed := importLine(ctx, all)
		done = append(done, arrived...)
		if err = failed; err != nil {
			err = fmt.Errorf("import: %s: %w", line[0].Slug, err)
			break
		}
	}
	return done, errors.Join(err, ledgers.Close())
}

// groupLines groups the logs by organization, in their order.
func groupLines(manifests []*manifest) (all [][]*manifest) {
	at := map[id.Organization]int{}
	for _, m := range manifests {
		n, known := at[m.ID]
		if !known {
			n = len(all)
			at[m.ID], all = n, append(all, nil)
		}
		all[n] = append(all[n], m)
	}
	return all
}

// importLine imports the logs of one organization. It checks all logs first. The latest log, which opens the
// organization, is imported last.
func importLine(ctx context.Context, line []*incoming) (done []Arrived, err error) {
	results := make([]Arrived, len(line))
	for n := len(line) - 1; n >= 0; n-- {
		if results[n], err = line[n].prepareImport(ctx); err != nil {
			return nil, err
		}
	}
	for n, w := range line {
		if !results[n].There {
			if err := w.importEvents(ctx); err != nil {
				return done, err
			}
		}
		done = append(done, results[n])
	}
	return done, nil
}

// Check reads a whole export and compares it with its checkpoints. It does not need a store.
func (i *Importer) Check(ctx context.Context, only string) ([]Organization, error) {
	if i.Report == nil {
		i.Report = func(Progress) {}
	}
	manifests, err := i.readManifests(only)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	var done []Organization
	for n, m := range manifests {
		p := Progress{Step: "checking", Organization: m.Slug, Number: n + 1, Of: len(manifests), Size: m.Size}
		_, err := m.verifyExport(ctx, 0, func(at id.Index) {
			p.Events = at
			i.Report(p)
		})
		if err != nil {
			return done, fmt.Errorf("check: %s: %w", m.Slug, err)
		}
		done = append(done, m.Organization)
	}
	return done, nil
}

// Person is an account that an import adds.
type Person struct {
	Email string
	Role  account.Role
}

// Preview describes what an organization adds with its import.
type Preview struct {
	Organization
	Plan   string
	People []Person
}

// Preview returns what the organizations of the export would add, so that the operator can decide before anything is
// written. It ignores frozen logs that have a successor.
func (i *Importer) Preview(ctx context.Context, only string) (all []Preview, err error) {
	manifests, err := i.readManifests(only)
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	for _, m := range manifests {
		if m.Ended {
			continue
		}
		p := Preview{Organization: m.Organization}
		roles := map[string]account.Role{}
		err := m.forEachRecord(ctx, func(r storage.Record) error {
			if org.IsFounding(r) {
				names, err := org.NamesOf(r)
				p.Plan = names.Plan
				return err
			}
			role, member, err := account.RoleIn(r)
			if member {
				roles[r.Key] = role
			}
			return err
		}, func(r storage.Record) error {
			if !account.IsAccount(r) {
				return nil
			}
			address, _, err := account.AddressRecord(r)
			p.People = append(p.People, Person{address.Key, roles[r.Key]})
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("import: %s: %w", m.Slug, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// readManifests reads the manifests of the organizations to import, and checks that all their pieces exist.
func (i *Importer) readManifests(only string) (all []*manifest, err error) {
	keyring := i.Keyring
	if i.Unauthenticated {
		keyring = nil
	} else if keyring == nil {
		return nil, unauthenticatedf("there is no master key to authenticate the export")
	}
	listed, err := readExport(i.Dir, keyring)
	if err != nil {
		return nil, err
	}
	for _, l := range listed {
		if only != "" && !l.isNamed(only) {
			continue
		}
		m, err := readManifest(i.Dir, l, keyring)
		if err != nil {
			return nil, err
		}
		for _, p := range m.pieces {
			if _, err := os.Stat(p.pathIn(m)); errors.Is(err, os.ErrNotExist) {
				return nil, Damagedf("%s is missing", p.pathIn(m))
			}
		}
		all = append(all, m)
	}
	if len(all) == 0 && only != "" {
		return nil, Refusedf("there is no organization %s in the export", only)
	}
	return all, nil
}
