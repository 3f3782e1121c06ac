package grant

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/internal/jcs"
)

// ErrOtherCall is returned by CheckCall.
var ErrOtherCall = errors.New("the payload is of a call with other arguments")

// CheckCall is for tools that check grants. It returns the payload in canonical form if it is of a
// guarded call with these arguments: it records them, or it has their digest and records some of them.
// arguments must encode as a JSON object. Errors wrap ErrOtherCall. The payload itself is part of the
// action that a grant is for, see NewAction.
func CheckCall(payload []byte, arguments any) (canonical []byte, err error) {
	canonical, err = jcs.Canonicalize(payload, jcs.MaxDepth-1) // it is a member of an envelope
	if err != nil {
		return nil, fmt.Errorf("check call: %w: %w", ErrOtherCall, err)
	}
	exact, err := jcs.MarshalExact(arguments)
	if err != nil {
		return nil, fmt.Errorf("check call: arguments: %w: %w", ErrOtherCall, err)
	}
	given, wanted := map[string]jsontext.Value{}, map[string]jsontext.Value{}
	if json.Unmarshal(canonical, &given) != nil || json.Unmarshal(exact, &wanted) != nil || given == nil || wanted == nil {
		return nil, fmt.Errorf("check call: no JSON object: %w", ErrOtherCall)
	}
	digest, digested := given["input_digest"]
	for _, name := range event.GuardMembers() {
		if _, taken := wanted[name]; taken { // a guard refuses such arguments
			return nil, fmt.Errorf("check call: %w", ErrOtherCall)
		}
		if name != jcs.TaggedMember {
			delete(given, name)
		}
	}
	if digested {
		sum := sha256.Sum256(exact)
		if string(digest) != `"`+hex.EncodeToString(sum[:])+`"` {
			return nil, fmt.Errorf("check call: %w", ErrOtherCall)
		}
		for name := range wanted {
			if _, shown := given[name]; !shown {
				delete(wanted, name)
			}
		}
	}
	recorded, err := RecordArguments(wanted)
	if err != nil {
		return nil, fmt.Errorf("check call: %w: %w", ErrOtherCall, err)
	}
	got, err := jcs.Marshal(given)
	if err != nil || !bytes.Equal(got, recorded) {
		return nil, fmt.Errorf("check call: %w", ErrOtherCall)
	}
	return canonical, nil
}

// RecordArguments returns the canonical payload that records the arguments of a call, which are the
// members of a JSON object in exact form. Numbers that a double cannot hold are tagged.
func RecordArguments(arguments map[string]jsontext.Value) ([]byte, error) {
	members := maps.Clone(arguments)
	jcs.TagMembers(members)
	text, err := json.Marshal(members)
	if err != nil {
		return nil, fmt.Errorf("record arguments: %w", err)
	}
	return jcs.Canonicalize(text, jcs.MaxDepth-1)
}
