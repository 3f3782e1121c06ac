package policystore

import (
	"bytes"
	"fmt"
	"maps"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/storage"
)

// parsePatchBody reads the members of a patch.
func parsePatchBody(policyID string, patch []byte) (map[string]jsontext.Value, error) {
	if len(patch) > policy.MaxBytes {
		return nil, fault.New(fault.TooLarge, "The policy is larger than 1 MiB")
	}
	patch, err := jcs.Canonicalize(patch, jcs.MaxDepth)
	if err != nil {
		return nil, err
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(patch, &members); err != nil || members == nil {
		return nil, fault.New(fault.Invalid, "The policy must be a JSON object")
	}
	if _, given := members["version"]; given {
		return nil, errVersionGiven()
	}
	same := append(append([]byte{'"'}, policyID...), '"')
	if other, given := members["policy_id"]; given && !bytes.Equal(other, same) {
		return nil, fault.New(fault.Invalid, "policy_id can't be changed")
	}
	return members, nil
}

// overlayMembers returns a document with members in the place of its own.
func overlayMembers(document []byte, members map[string]jsontext.Value) ([]byte, error) {
	var all map[string]jsontext.Value
	if err := json.Unmarshal(document, &all); err != nil {
		return nil, errUnreadable("read document", fmt.Errorf("%w: %w", storage.ErrCorrupt, err))
	}
	maps.Copy(all, members)
	changed, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("change draft: %w", err)
	}
	return changed, nil
}
