package outbox

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// SealedKey is where an organization's webhook key is.
func SealedKey() log.Sealed {
	return log.Sealed{Kind: kindKey, Reseal: func(keyring *seal.Keyring, identity *log.Identity, value []byte) (now []byte, changed bool, err error) {
		var r keyRecord
		if err := json.Unmarshal(value, &r); err != nil {
			return nil, false, fmt.Errorf("webhook key: %w: %w", storage.ErrCorrupt, err)
		}
		if r.Sealed, changed, err = keyring.Reseal(sealContext(identity.Organization), r.Sealed); err != nil {
			return nil, false, fmt.Errorf("webhook key: %w", err)
		}
		now, err = json.Marshal(r)
		return now, changed, err
	}}
}
