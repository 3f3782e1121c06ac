package approval

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// SealedGrantKey is where an organization's grant key is.
func SealedGrantKey() log.Sealed {
	return log.Sealed{Kind: kindGrantKey, Reseal: func(keyring *seal.Keyring, identity *log.Identity, value []byte) (now []byte, changed bool, err error) {
		var r grantKeyRecord
		if err := json.Unmarshal(value, &r); err != nil {
			return nil, false, fmt.Errorf("grant key: %w: %w", storage.ErrCorrupt, err)
		}
		if r.Sealed, changed, err = keyring.Reseal(sealContext(identity.Organization), r.Sealed); err != nil {
			return nil, false, fmt.Errorf("grant key: %w", err)
		}
		now, err = json.Marshal(r)
		return now, changed, err
	}}
}
