package agent

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// SealedBridgeKey is where an organization's bridge key is.
func SealedBridgeKey() log.Sealed {
	return log.Sealed{Kind: kindBridge, Reseal: func(keyring *seal.Keyring, identity *log.Identity, value []byte) (now []byte, changed bool, err error) {
		var r bridgeRecord
		if err := json.Unmarshal(value, &r); err != nil {
			return nil, false, fmt.Errorf("bridge key: %w: %w", storage.ErrCorrupt, err)
		}
		if r.Sealed, changed, err = keyring.Reseal(bridgeSealContext(identity.Organization), r.Sealed); err != nil {
			return nil, false, fmt.Errorf("bridge key: %w", err)
		}
		now, err = json.Marshal(r)
		return now, changed, err
	}}
}
