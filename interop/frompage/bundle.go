package frompage

import (
	"cmp"
	"fmt"
)

// bundle is a readable bundle. Members that may be null or absent are pointers.
type bundle struct {
	organizationID, origin, eventID, eventHash string
	sequenceNumber, logIndex                   uint64
	entry, checkpoint, logKey, disclosure      string
	inclusion                                  proof
	previousEntry                              *string
	previousInclusion                          *proof
	logKeys                                    []string
	record, envelope                           *string
	erased, secondProof                        bool
}

// proof is one inclusion proof of a bundle.
type proof struct {
	logIndex, treeSize uint64
	rootHash           string
	hashes             []string
}

// readBundle reads a text by "JSON" and "The bundle". The result can be malformed only inside of its texts.
func readBundle(text string) (bundle, error) {
	v, err := readObject(text)
	if err != nil {
		return bundle{}, err
	}
	if name := wrongMember(v); name != "" {
		return bundle{}, fmt.Errorf("%s is missing or does not match the table of a bundle", name)
	}
	member := func(name string) string { return v.object[name].text }
	b := bundle{
		organizationID: member("organization_id"),
		origin:         member("origin"),
		eventID:        member("event_id"),
		eventHash:      member("event_hash"),
		sequenceNumber: uint64(v.object["sequence_num"].number),
		logIndex:       uint64(v.object["log_index"].number),
		entry:          member("entry"),
		checkpoint:     member("checkpoint"),
		logKey:         member("log_key"),
		disclosure:     member("disclosure"),
		inclusion:      readProof(v.object["inclusion"]),
		previousEntry:  textIfThere(v.object["previous_entry"]),
		logKeys:        texts(v.object["log_keys"]),
		record:         textIfThere(v.object["record"]),
		envelope:       textIfThere(v.object["envelope"]),
		erased:         v.object["erased_at"].kind != isNull,
		secondProof:    v.object["directory"].kind != isNull,
	}
	if previous := v.object["previous_inclusion"]; previous.kind != isNull {
		p := readProof(previous)
		b.previousInclusion = &p
	}
	return b, nil
}

// isBundle reports whether a value is a bundle by the table of "The bundle".
func isBundle(v value) bool { return v.kind == isObject && wrongMember(v) == "" }

// wrongMember returns the first member that violates the table of "The bundle", or "". Unknown members are accepted.
func wrongMember(v value) string {
	required := table{
		"version":            one,
		"organization_id":    uuid,
		"organization_slug":  anyText,
		"origin":             anyText,
		"event_id":           anyText,
		"sequence_num":       natural,
		"log_index":          natural,
		"event_hash":         hash,
		"entry":              anyText,
		"inclusion":          isProof,
		"previous_entry":     nullOr(anyText),
		"previous_inclusion": nullOr(isProof),
		"checkpoint":         anyText,
		"log_key":            anyText,
		"disclosure":         oneOf("commitment", "record", "full"),
	}
	optional := table{
		"log_keys":  nullOr(listOf(anyText)),
		"record":    nullOr(anyText),
		"envelope":  nullOr(anyText),
		"erased_at": nullOr(timeWithMillis),
		"directory": nullOr(isSecondProof),
	}
	return cmp.Or(required.wrong(v), optional.ifThere(v).wrong(v))
}

// isProof implements the table "a proof": its members and no others.
func isProof(v value) bool {
	return table{"log_index": natural, "tree_size": natural, "root_hash": hash, "hashes": listOf(hash)}.holdsOnly(v)
}

// isSecondProof implements "a second proof": a bundle, which itself has no second proof, and a proof.
func isSecondProof(v value) bool {
	return table{"bundle": isBundle, "inclusion": isProof}.holdsOnly(v) &&
		v.object["bundle"].object["directory"].kind == isNull
}

// readProof returns the members of a value that is a proof.
func readProof(v value) proof {
	return proof{
		logIndex: uint64(v.object["log_index"].number),
		treeSize: uint64(v.object["tree_size"].number),
		rootHash: v.object["root_hash"].text,
		hashes:   texts(v.object["hashes"]),
	}
}

// textIfThere returns the text of a value, or nil for null and for an absent member (the zero value is null).
func textIfThere(v value) *string {
	if v.kind == isNull {
		return nil
	}
	return &v.text
}

// texts returns a list of texts, or none for null.
func texts(v value) []string {
	var out []string
	for _, element := range v.list {
		out = append(out, element.text)
	}
	return out
}
