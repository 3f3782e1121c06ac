package policystore

import (
	"bytes"
	"fmt"
	"maps"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/storage"
)

// patchBody is a patch of a policy. It may contain all members of a returned version.
type patchBody struct {
	members map[string]jsontext.Value // of the document
	base    shownVersion
}

// shownVersion contains the members of a patch that identify the version on which it is based.
type shownVersion struct {
	Version *uint64  `json:"version"`
	Digest  *id.Hash `json:"policy_digest"`
}

// readOnlyMembers are the members of a returned version that are not part of a document.
var readOnlyMembers = []string{
	"version", "policy_digest", "state", "written_at", "written_by", "activated_at", "archived_at",
}

// parsePatchBody parses a patch.
func parsePatchBody(policyID string, patch []byte) (body patchBody, err error) {
	members, err := parseMembers(patch)
	if err != nil {
		return body, err
	}
	same := append(append([]byte{'"'}, policyID...), '"')
	if other, given := members["policy_id"]; given && !bytes.Equal(other, same) {
		return body, fault.New(fault.Invalid, "policy_id cannot be changed")
	}
	if err := body.base.readFrom(members); err != nil {
		return body, err
	}
	for _, name := range readOnlyMembers {
		delete(members, name)
	}
	body.members = members
	return body, nil
}

// readFrom reads the members that identify a version. null counts as missing.
func (b *shownVersion) readFrom(members map[string]jsontext.Value) error {
	if version := members["version"]; version != nil && json.Unmarshal(version, &b.Version) != nil {
		return fault.New(fault.Invalid, "version must be a whole number from 1")
	}
	if digest := members["policy_digest"]; digest != nil && json.Unmarshal(digest, &b.Digest) != nil {
		return fault.New(fault.Invalid, "policy_digest must be 64 hex digits")
	}
	return nil
}

// checkNewest returns an error if a patch is based on another version than the latest, or on an older state of its
// draft.
func (b *shownVersion) checkNewest(newest *Version) error {
	if b.Version != nil && *b.Version != newest.Version || b.Digest != nil && *b.Digest != newest.Digest {
		return fault.New(fault.Conflict,
			"The policy was changed in the meantime: read it again, or omit version and policy_digest")
	}
	return nil
}

func parseMembers(patch []byte) (map[string]jsontext.Value, error) {
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
	return members, nil
}

// overlayMembers returns a document with the given members replaced.
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
