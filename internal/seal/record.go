package seal

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Owner is the ledger and the organization that a sealed key belongs to.
type Owner struct {
	Origin       id.Origin
	Organization id.Organization
}

// Record is a kind of record that holds sealed keys: one record in the partition of each
// organization, under the key "". The package that owns the kind says how its keys are
// sealed again.
type Record struct {
	Kind storage.Kind
	// Reseal returns the value of the record with all keys sealed under the active master
	// key; changed is false when they already were.
	Reseal func(keyring *Keyring, owner Owner, value []byte) (resealed []byte, changed bool, err error)
}

// Texts is a kind of record that holds sealed texts: any number in the partition of each organization
// and in the service's own.
type Texts struct {
	Kind storage.Kind
	// Reseal is Record.Reseal for the record of a key.
	Reseal func(keyring *Keyring, key string, value []byte) (resealed []byte, changed bool, err error)
}

// RecordOf returns the Record of a kind whose values are JSON of R. The name names the
// keys in errors, context returns the context that they are sealed with, and keys returns
// the sealed keys of a value.
func RecordOf[R any](kind storage.Kind, name string, context func(Owner) string, keys func(*R) []*[]byte) Record {
	return Record{kind, func(keyring *Keyring, owner Owner, value []byte) (resealed []byte, changed bool, err error) {
		var r R
		if err := json.Unmarshal(value, &r); err != nil {
			return nil, false, fmt.Errorf("%s: %w: %w", name, storage.ErrCorrupt, err)
		}
		for _, sealed := range keys(&r) {
			again, moved, err := keyring.Reseal(context(owner), *sealed)
			if err != nil {
				return nil, false, fmt.Errorf("%s: %w", name, err)
			}
			*sealed, changed = again, changed || moved
		}
		resealed, err = json.Marshal(r)
		return resealed, changed, err
	}}
}

// ForOrganization returns the context of a key that is sealed for an organization, as
// RecordOf takes it.
func ForOrganization(context func(id.Organization) string) func(Owner) string {
	return func(o Owner) string { return context(o.Organization) }
}
