package log

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/storage"
)

// Sealed is the record of a kind, one in each organization's partition under key "",
// that holds keys which are sealed under the master key. Its owner says how they are
// sealed again.
type Sealed struct {
	Kind storage.Kind
	// Reseal returns the record's value with all keys sealed under the active master
	// key; changed is false when they are already.
	Reseal func(keyring *seal.Keyring, identity *Identity, value []byte) (now []byte, changed bool, err error)
}

// SealedIn is a record whose value is a JSON R: where that holds its keys, and what
// they are sealed for. what names it in errors.
func SealedIn[R any](kind storage.Kind, what string, context func(*Identity) string, keys func(*R) []*[]byte) Sealed {
	return Sealed{kind, func(keyring *seal.Keyring, identity *Identity, value []byte) (now []byte, changed bool, err error) {
		var r R
		if err := json.Unmarshal(value, &r); err != nil {
			return nil, false, fmt.Errorf("%s: %w: %w", what, storage.ErrCorrupt, err)
		}
		for _, sealed := range keys(&r) {
			again, moved, err := keyring.Reseal(context(identity), *sealed)
			if err != nil {
				return nil, false, fmt.Errorf("%s: %w", what, err)
			}
			*sealed, changed = again, changed || moved
		}
		now, err = json.Marshal(r)
		return now, changed, err
	}}
}

// OfOrganization is the context of what is sealed for an organization, for SealedIn.
func OfOrganization(context func(id.Organization) string) func(*Identity) string {
	return func(i *Identity) string { return context(i.Organization) }
}

// SealedLogKeys is where the log keys are.
func SealedLogKeys() Sealed {
	return SealedIn(kindIdentity, "log keys", func(i *Identity) string { return sealContext(i.Origin) }, func(r *identityRecord) []*[]byte {
		keys := []*[]byte{&r.SealedLogKey}
		for i := range r.LaterKeys {
			keys = append(keys, &r.LaterKeys[i].Sealed)
		}
		return keys
	})
}
