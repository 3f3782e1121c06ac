package seal

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Owner identifies the ledger and the organization that a sealed key belongs to.
type Owner struct {
	Origin       id.Origin
	Organization id.Organization
}

// Record describes a kind of record that contains sealed keys: one record in the partition of each organization, with
// the key "". The package that owns the kind defines how its keys are resealed.
type Record struct {
	Kind storage.Kind
	// Reseal returns the value of the record with all keys sealed under the active master key. changed is false if they
	// already were.
	Reseal func(keyring *Keyring, owner Owner, value []byte) (resealed []byte, changed bool, err error)
}

// Texts describes a kind of record that contains sealed texts: any number in the partition of each organization and in
// the service's own partition.
type Texts struct {
	Kind storage.Kind
	// Reseal is like Record.Reseal, for the record with the given key.
	Reseal func(keyring *Keyring, key string, value []byte) (resealed []byte, changed bool, err error)
}

// RecordOf returns the Record of a kind whose values are the JSON of R. name names the keys in errors, context returns
// the context that they are sealed for, and keys returns the sealed keys in a value.
func RecordOf[R any](kind storage.Kind, name string, context func(Owner) string, keys func(*R) []*[]byte) Record {
	return Record{kind, func(keyring *Keyring, owner Owner, value []byte) (resealed []byte, changed bool, err error) {
		var r R
		if err := json.Unmarshal(value, &r); err != nil {
			return nil, false, fmt.Errorf("%s: %w: %w", name, storage.ErrCorrupt, err)
		}
		for _, sealed := range keys(&r) {
			value, moved, err := keyring.Reseal(context(owner), *sealed)
			if err != nil {
				return nil, false, fmt.Errorf("%s: %w", name, err)
			}
			*sealed, changed = value, changed || moved
		}
		resealed, err = json.Marshal(r)
		return resealed, changed, err
	}}
}

// ForOrganization adapts the context of a key that is sealed for an organization to RecordOf.
func ForOrganization(context func(id.Organization) string) func(Owner) string {
	return func(o Owner) string { return context(o.Organization) }
}
