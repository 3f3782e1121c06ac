package log

import (
	"fmt"

	"github.com/go-json-experiment/json"

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

// SealedLogKeys is where the log keys are.
func SealedLogKeys() Sealed { return Sealed{kindIdentity, resealLogKeys} }

func resealLogKeys(keyring *seal.Keyring, identity *Identity, value []byte) (now []byte, changed bool, err error) {
	var r identityRecord
	if err := json.Unmarshal(value, &r); err != nil {
		return nil, false, fmt.Errorf("log keys: %w: %w", storage.ErrCorrupt, err)
	}
	keys := []*[]byte{&r.SealedLogKey}
	for i := range r.LaterKeys {
		keys = append(keys, &r.LaterKeys[i].Sealed)
	}
	for _, sealed := range keys {
		again, moved, err := keyring.Reseal(sealContext(identity.Origin), *sealed)
		if err != nil {
			return nil, false, fmt.Errorf("log keys: %w", err)
		}
		*sealed, changed = again, changed || moved
	}
	now, err = json.Marshal(r)
	return now, changed, err
}
