package verify

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/jcs"
)

// presence is when a member of a bundle may be absent.
type presence uint8

const (
	unknown  presence = iota // not defined in this version
	required                 // present and not null
	nullable                 // present, null for the first entry
	optional                 // absent or null if not disclosed
)

func memberPresence(name string) presence {
	switch name {
	case "version", "organization_id", "organization_slug", "origin", "event_id", "sequence_num", "log_index",
		"event_hash", "entry", "inclusion", "checkpoint", "log_key", "disclosure":
		return required
	case "previous_entry", "previous_inclusion":
		return nullable
	case "log_keys", "record", "envelope", "erased_at", "directory", "verification", "operator_statement":
		return optional
	}
	return unknown
}

// Numbers of members that every bundle has.
const (
	requiredMembers  = 13
	nullableMembers  = 2
	inclusionMembers = "hashes log_index root_hash tree_size" // in canonical order
)

// ParseBundle parses a bundle: strict I-JSON (no duplicate names, no number that a double cannot
// represent), all members of version 1 with their types, numbers in 0..event.MaxSeq. A verification
// or operator_statement of another type is left at its zero value. Errors wrap ErrMalformed or are
// ErrVersion.
//
// Members that version 1 does not define are accepted, so that a server may add members. No check
// covers them, and Check lists them as unchecked. A change in the meaning of a known member
// requires another version, which is rejected. src is not retained. The caller must bound its
// length.
func ParseBundle(src []byte) (*Bundle, error) {
	canonical, members, err := jcs.ParseObject(nil, src, jcs.MaxDepth)
	if err != nil {
		return nil, fmt.Errorf("parse bundle: %w: %w", ErrMalformed, err)
	}
	if err := checkVersion(canonical, members); err != nil {
		return nil, fmt.Errorf("parse bundle: %w", err)
	}
	b := new(Bundle)
	if b.unknown, err = checkMembers(canonical, members); err != nil {
		return nil, fmt.Errorf("parse bundle: %w", err)
	}
	if err := json.Unmarshal(canonical, b, json.WithUnmarshalers(remarkDecoders())); err != nil {
		return nil, fmt.Errorf("parse bundle: %w: %w", ErrMalformed, err)
	}
	if !b.hasValidNumbers() {
		return nil, fmt.Errorf("parse bundle: number: %w", ErrMalformed)
	}
	if err := b.readDirectory(canonical, members); err != nil {
		return nil, err
	}
	return b, nil
}

// readDirectory parses the second proof as strictly as the bundle that contains it.
func (b *Bundle) readDirectory(canonical []byte, members []jcs.Member) (err error) {
	for _, m := range members {
		value := canonical[m.Value:m.End]
		if string(m.Name(canonical)) != "directory" || isNullValue(value) {
			continue
		}
		if b.Directory, err = parseDirectory(value); err != nil {
			return fmt.Errorf("parse bundle: %w", err)
		}
	}
	return nil
}

// checkVersion returns ErrVersion if the bundle has another version, regardless of its other
// members. It accepts a bundle without a version, which checkMembers then rejects as malformed.
func checkVersion(canonical []byte, members []jcs.Member) error {
	for _, m := range members {
		value := canonical[m.Value:m.End]
		if string(m.Name(canonical)) == "version" && string(value) != "1" && !isNullValue(value) {
			return ErrVersion
		}
	}
	return nil
}

// checkMembers rejects missing members and null, which decoding into a struct would accept. It
// returns the unknown names.
func checkMembers(canonical []byte, members []jcs.Member) (others []string, err error) {
	var count [optional + 1]int
	for _, m := range members {
		name, value := string(m.Name(canonical)), canonical[m.Value:m.End]
		kind := memberPresence(name)
		count[kind]++
		switch {
		case kind == unknown:
			others = append(others, name)
		case kind == required && isNullValue(value):
			return nil, fmt.Errorf("%s is null: %w", name, ErrMalformed)
		case name == "inclusion" || name == "previous_inclusion" && !isNullValue(value):
			if err := checkInclusionMembers(value); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		case name == "log_keys":
			if err := checkTexts(value); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	if count[required] != requiredMembers || count[nullable] != nullableMembers {
		return nil, fmt.Errorf("missing member: %w", ErrMalformed)
	}
	return others, nil
}

// checkInclusionMembers checks that value has exactly the members of an inclusion proof. No member
// and no hash may be null, because decoding would turn null into a hash of zeros.
func checkInclusionMembers(value []byte) error {
	_, members, err := jcs.ParseObject(nil, value, jcs.MaxDepth)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if bytes.Contains(value, []byte("null")) { // cannot be part of a name, number or hash
		return fmt.Errorf("null: %w", ErrMalformed)
	}
	var names [][]byte
	for _, m := range members {
		names = append(names, m.Name(value))
	}
	if string(bytes.Join(names, []byte(" "))) != inclusionMembers {
		return fmt.Errorf("members: %w", ErrMalformed)
	}
	return nil
}

// checkTexts checks that value is null or a list of strings.
func checkTexts(value []byte) error {
	var texts []*string
	if err := json.Unmarshal(value, &texts); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if slices.Contains(texts, nil) {
		return fmt.Errorf("null: %w", ErrMalformed)
	}
	return nil
}

func isNullValue(value []byte) bool { return string(value) == "null" }
